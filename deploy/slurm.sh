#!/usr/bin/env bash
# An array of 200 jobs, one for each shard. In a directory that all share:
#   mkdir -p reports && sbatch slurm.sh
#   redlatch campaign merge reports
#SBATCH --job-name=redlatch-campaign
#SBATCH --array=1-200
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=256M
#SBATCH --time=8
#SBATCH --output=reports/%a.log
redlatch fuzz --jar /jars/redisson-4.7.0.jar --search guided --seconds 13 --shard auto/200 --output reports
