// go-redis, as tests/contracts/README.md describes it: contract SHAPE PORT...
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	kept    = "{contract}:kept"
	lock    = "{contract}:lock"
	channel = "{contract}:news"
	counter = "{contract}:counter"
)

var (
	ctx     = context.Background()
	shape   = os.Args[1]
	release = redis.NewScript("if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end")
	client  redis.UniversalClient
	news    *redis.PubSub
)

func check(holds bool, what string) error {
	if holds {
		return nil
	}
	return errors.New(what)
}

func addresses() []string {
	var all []string
	for _, port := range os.Args[2:] {
		all = append(all, "127.0.0.1:"+port)
	}
	return all
}

// open returns a client of the shape. Of replicas the one whose role is master.
func open() (redis.UniversalClient, error) {
	switch shape {
	case "cluster":
		// By default the client asks for the slots again after a minute, however many errors it gets.
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: addresses(), ClusterStateReloadInterval: time.Second}), nil
	case "sentinel":
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "mymaster", SentinelAddrs: addresses()}), nil
	}
	for _, address := range addresses() {
		found := redis.NewClient(&redis.Options{Addr: address})
		if role, err := found.Do(ctx, "ROLE").Slice(); err == nil && role[0] == "master" {
			return found, nil
		}
		found.Close()
	}
	return nil, errors.New("no master answers")
}

// until tries until there is no error.
func until(what func() error) error {
	end := time.Now().Add(30 * time.Second)
	for {
		err := what()
		if err == nil || time.Now().After(end) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func acquires(key, token string) bool { return client.SetNX(ctx, key, token, time.Minute).Val() }

func releases(key, token string) bool {
	n, err := release.Run(ctx, client, []string{key}, token).Int()
	return err == nil && n == 1
}

func connect() (err error) {
	if client, err = open(); err != nil {
		return err
	}
	return client.Del(ctx, kept, lock, counter).Err()
}

func takeLocks() error {
	return check(acquires(kept, "one") && !acquires(kept, "two") && !releases(kept, "two") && acquires(lock, "one") && releases(lock, "one"), "lock")
}

// message waits for a message on the subscription, and sends it until it comes.
func message(text string) error {
	return until(func() error {
		client.Publish(ctx, channel, text)
		select {
		case received := <-news.Channel():
			return check(received.Payload == text, "another message")
		case <-time.After(200 * time.Millisecond):
			return errors.New("no message")
		}
	})
}

func pubsub() error {
	news = client.Subscribe(ctx, channel)
	return message("before")
}

func pipeline() error {
	replies, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i := 0; i < 100; i++ {
			pipe.Incr(ctx, counter)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return check(replies[99].(*redis.IntCmd).Val() == 100, "count")
}

func script() error {
	if err := client.ScriptFlush(ctx).Err(); err != nil {
		return err
	}
	return check(acquires(lock, "one") && releases(lock, "one"), "lock")
}

func reconnect() error {
	return until(func() (err error) {
		if shape == "replicas" {
			if client, err = open(); err != nil {
				return err
			}
		}
		return client.Set(ctx, counter, 1, 0).Err()
	})
}

func isKept() error {
	return check(!acquires(kept, "two") && releases(kept, "one"), "the lock is lost")
}

func relock() error { return check(acquires(kept, "two") && releases(kept, "two"), "lock") }

func resubscribe() error {
	if shape == "replicas" { // another client
		if err := pubsub(); err != nil {
			return err
		}
	}
	return message("after")
}

func main() {
	ready := func() error {
		fmt.Println("ready")
		_, err := bufio.NewReader(os.Stdin).ReadString('\n')
		return err
	}
	steps := []struct {
		name string
		run  func() error
	}{
		{"connect", connect}, {"lock", takeLocks}, {"pubsub", pubsub}, {"pipeline", pipeline}, {"script", script}, {"fail", ready},
		{"reconnect", reconnect}, {"kept", isKept}, {"relock", relock}, {"resubscribe", resubscribe},
	}
	for _, step := range steps {
		begin := time.Now()
		if err := step.run(); err != nil {
			fmt.Printf("%s failed: %v\n", step.name, err)
			os.Exit(1)
		}
		if step.name != "fail" {
			fmt.Printf("%s ok %d ms\n", step.name, time.Since(begin).Milliseconds())
		}
	}
}
