package fairqueue_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/internal/fairqueue"
)

// TestALargePage: a page that takes more than an app may have is stored where nothing else
// waits of its app, or it would be sent again for ever; it takes batches of the same size as
// small ones do.
func TestALargePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := fairqueue.NewIntake(2000, 5000)
		ctx, cancel := context.WithCancel(t.Context())
		var batches []int
		over := make(chan struct{})
		go func() {
			defer close(over)
			in.Run(ctx, func(_ context.Context, items []*int) error {
				batches = append(batches, len(items))
				return nil
			})
		}()
		items := make([]*int, 40)
		for i := range items {
			items[i] = new(int)
		}
		if err := in.Store(ctx, "s", "a", 4900, time.Minute, items...); err != nil {
			t.Error(err)
		}
		cancel()
		<-over
		if !slices.Equal(batches, []int{20, 20}) {
			t.Errorf("stored in batches of %v", batches)
		}
	})
}

// TestRoomThatIsNotTheLargests: where nothing can be dropped of the app that has most, since
// it is being stored, others of its kind make room.
func TestRoomThatIsNotTheLargests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := fairqueue.NewIntake(2000, 5000)
		ctx, cancel := context.WithCancel(t.Context())
		hang, over := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(over)
			in.Run(ctx, func(context.Context, []*int) error { <-hang; return nil })
		}()
		for i, size := range []int{2000, 1400, 1400} { // the first is being stored
			go in.Store(ctx, "", fmt.Sprint("app", i), size, time.Second, new(int))
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		stored := make(chan error)
		go func() { stored <- in.Store(ctx, "own", "honest", 1000, time.Minute, new(int)) }()
		synctest.Wait()
		close(hang)
		if err := <-stored; err != nil {
			t.Error(err)
		}
		cancel()
		<-over
	})
}

// TestIntakeBooks: whoever comes and goes, and whatever fails, what is counted is what is
// there, everybody is answered, and what was answered well was done.
func TestIntakeBooks(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			in := fairqueue.NewIntake(2000, 5000)
			ctx, cancel := context.WithCancel(t.Context())
			var mu sync.Mutex
			rnd := rand.New(rand.NewPCG(seed, 1))
			random := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return rnd.IntN(n)
			}
			done, calm := map[*int]bool{}, false
			over := make(chan struct{})
			go func() {
				defer close(over)
				in.Run(ctx, func(_ context.Context, items []*int) error {
					time.Sleep(time.Duration(random(20)) * time.Millisecond)
					in.Size()
					mu.Lock()
					defer mu.Unlock()
					for _, x := range items {
						if !calm && (*x == 0 && rnd.IntN(2) == 0 || rnd.IntN(60) == 0) {
							return errors.New("failed")
						}
					}
					for _, x := range items {
						done[x] = true
					}
					return nil
				})
			}()
			var all sync.WaitGroup
			for who := range 12 {
				all.Go(func() {
					for range 60 {
						items := make([]*int, 1+random(12))
						for i := range items {
							items[i] = new(int)
							*items[i] = who
						}
						scope := fmt.Sprint("scope", who%4)
						err := in.Store(ctx, scope, fmt.Sprint("app", who), 300+random(1500), time.Duration(random(50))*time.Millisecond, items...)
						in.Size()
						mu.Lock()
						for _, x := range items {
							if err == nil && !done[x] {
								t.Error("answered, and not done")
							}
						}
						mu.Unlock()
						time.Sleep(time.Duration(random(30)) * time.Millisecond)
					}
				})
			}
			all.Wait()
			mu.Lock()
			calm = true
			mu.Unlock()
			time.Sleep(2 * time.Minute)
			if size, lines := in.Size(); size != 0 || lines != 0 {
				t.Errorf("seed %d: %d bytes of %d apps are left", seed, size, lines)
			}
			cancel()
			<-over
		})
	}
}
