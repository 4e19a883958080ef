// Command mix uses the locks of redsync for a while, on one node and on three, and prints how often each was granted.
//
//	mix SECONDS PORT...
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"
)

func main() {
	seconds, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	var pools []redis.Pool
	for _, port := range os.Args[2:] {
		pools = append(pools, goredis.NewPool(goredislib.NewClient(&goredislib.Options{Addr: "127.0.0.1:" + port})))
	}
	one, three := redsync.New(pools[0]), redsync.New(pools...)
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	var counting sync.Mutex
	counts := map[string]int{}
	count := func(name string) {
		counting.Lock()
		counts[name]++
		counting.Unlock()
	}
	var all sync.WaitGroup
	for worker := int64(0); worker < 4; worker++ {
		all.Add(1)
		go func() {
			defer all.Done()
			dice := rand.New(rand.NewSource(worker))
			for time.Now().Before(end) {
				name, locks := "one", one
				if dice.Intn(2) == 0 {
					name, locks = "three", three
				}
				mutex := locks.NewMutex("mix:redsync:"+name, redsync.WithExpiry(2*time.Second), redsync.WithTries(5),
					redsync.WithRetryDelay(5*time.Millisecond))
				if err := mutex.LockContext(context.Background()); err != nil {
					var taken *redsync.ErrTaken
					if !errors.As(err, &taken) && !errors.Is(err, redsync.ErrFailed) {
						count("failed: " + err.Error())
					}
					continue
				}
				count(name + ": granted")
				time.Sleep(time.Duration(dice.Intn(6)) * time.Millisecond)
				if dice.Intn(5) == 0 {
					if ok, err := mutex.Extend(); !ok || err != nil {
						count(fmt.Sprint("failed to extend: ", ok, err))
					}
				}
				if ok, err := mutex.Unlock(); !ok || err != nil {
					count(fmt.Sprint("failed to release: ", ok, err))
				}
			}
		}()
	}
	all.Wait()
	for name, times := range counts {
		fmt.Printf("redsync %s %d\n", name, times)
	}
}
