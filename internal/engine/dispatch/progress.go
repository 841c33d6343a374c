package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// How far runs are. Input: what executors of this process say, and those elsewhere with their
// logs. Output: the runs' rows, all that is new in one call a second at most. Nobody waits for
// it, and it is best effort: what a handler has said last goes with its result, by finish.go.

const (
	// progressEvery is the time between two calls of the store.
	progressEvery = time.Second
	// maxProgress bounds the runs whose progress waits to be stored. What is said of
	// further ones is dropped.
	maxProgress = 20_000
)

// progress stores how far runs are. It is safe for concurrent use.
type progress struct {
	*core.Core
	queue  *queue.Queue
	rarely loop.LogLimiter

	mu   sync.Mutex
	news map[int64]store.Progress // guarded by mu: what is not stored yet, by run
	wake loop.Wake
}

func newProgress(s *core.Core, e *queue.Queue) *progress {
	return &progress{Core: s, queue: e, news: map[int64]store.Progress{}, wake: loop.NewWake()}
}

// attached takes in what an executor of this process says of a run. It returns at once.
func (p *progress) attached(logID, logDateTim int64, said wire.Progress) {
	f := attachedFlight(p.queue, logID, logDateTim)
	if f == nil {
		return
	}
	percent, text := core.BoundProgress(said)
	p.add(store.Progress{RunID: logID, Incarnation: mustLocal(f.Run.Address), Token: f.Run.Token, Percent: percent, Text: text}, true)
}

// elsewhere takes in what an executor elsewhere has said with the log of a run, which was
// read before it was asked.
func (p *progress) elsewhere(run store.Run, said wire.Progress) {
	percent, text := core.BoundProgress(said)
	if said == (wire.Progress{}) || percent == run.Progress && text == run.ProgressText || run.State.Ended() || !p.Life.Running() {
		return
	}
	p.add(store.Progress{RunID: run.ID, Token: run.Token, Percent: percent, Text: text}, true)
}

// add has progress stored. What is not newer gives way to what is there.
func (p *progress) add(said store.Progress, newer bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, waits := p.news[said.RunID]; waits && !newer || !waits && len(p.news) >= maxProgress {
		return
	}
	p.news[said.RunID] = said
	p.wake.Poke()
}

// take returns what is to be stored: of runs of this process, those that are under way.
func (p *progress) take() []store.Progress {
	p.mu.Lock()
	news := p.news
	p.news = map[int64]store.Progress{}
	p.mu.Unlock()
	list := make([]store.Progress, 0, len(news))
	for _, said := range news {
		if said.Incarnation == "" || p.queue.InFlight.Of(said.RunID) != nil {
			list = append(list, said)
		}
	}
	return list
}

// loop stores what is new, until ctx ends. What the store has not taken is tried again a
// second later, unless there is something newer by then.
func (p *progress) loop(ctx context.Context) {
	backoff := loop.Backoff{Log: p.Logger, What: "storing the progress of runs"}
	for loop.Sleep(ctx, loop.Forever, p.wake) {
		list := p.take()
		if backoff.Failed(ctx, p.storeAll(ctx, list)) {
			for _, said := range list {
				p.add(said, false)
			}
		}
		if !loop.Sleep(ctx, progressEvery) {
			return
		}
	}
}

func (p *progress) storeAll(ctx context.Context, list []store.Progress) error {
	for page := range slices.Chunk(list, loop.StoreBatch) {
		err := p.store(ctx, page)
		if errors.Is(err, store.ErrRefused) {
			err = p.storeHalves(ctx, page)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *progress) store(ctx context.Context, page []store.Progress) error {
	return loop.Do(ctx, func(ctx context.Context) error { return p.Store.SetProgress(ctx, page) })
}

// storeHalves stores each half by itself of what the store has refused together. What it refuses
// alone is dropped: the run's next news, or its result, say it again.
func (p *progress) storeHalves(ctx context.Context, page []store.Progress) error {
	dropped, taken := 0, false
	_, why, err := loop.Halve(page, func(part []store.Progress) error {
		err := p.store(ctx, part)
		taken = taken || err == nil
		if errors.Is(err, store.ErrRefused) && len(part) == 1 {
			if dropped++; dropped >= loop.RefusedFew && !taken {
				return fmt.Errorf("nothing is taken: %v", err)
			}
		}
		return err
	})
	if why != nil && p.rarely.Allow("refused") {
		p.Logger.WarnContext(ctx, "xxljob: the store refuses the progress of some runs, which is dropped", "runs", dropped, "error", why)
	}
	return err
}
