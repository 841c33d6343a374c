package xxljob

// How far runs are. Input: what executors of this process say, and those elsewhere with their
// logs. Output: the runs' rows, all that is new in one call a second at most. Nobody waits for
// it, and it is best effort: what a handler has said last goes with its result, by finish.go.

import (
	"context"
	"sync"
	"time"

	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

const (
	// progressEvery is the time between two calls of the store.
	progressEvery = time.Second
	// maxProgress bounds the runs whose progress waits to be stored. What is said of
	// further ones is dropped.
	maxProgress = 20_000
)

// progress stores how far runs are. It is safe for concurrent use.
type progress struct {
	*shared
	engine *engine

	mu   sync.Mutex
	news map[int64]store.Progress // guarded by mu: what is not stored yet, by run
	wake wake
}

func newProgress(s *shared, e *engine) *progress {
	return &progress{shared: s, engine: e, news: map[int64]store.Progress{}, wake: newWake()}
}

// attached takes in what an executor of this process says of a run. It returns at once.
func (p *progress) attached(logID, logDateTim int64, said wire.Progress) {
	f := p.engine.under.flight(logID)
	if f == nil || f.remote || !f.run.isOf(logDateTim) {
		return
	}
	percent, text := boundProgress(said)
	p.add(store.Progress{RunID: logID, Incarnation: mustLocal(f.run.Address), Token: f.run.Token, Percent: percent, Text: text}, true)
}

// elsewhere takes in what an executor elsewhere has said with the log of a run, which was
// read before it was asked.
func (p *progress) elsewhere(run Run, said wire.Progress) {
	percent, text := boundProgress(said)
	if said == (wire.Progress{}) || percent == run.Progress && text == run.ProgressText || run.State.Ended() || !p.life.running() {
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
	p.wake.poke()
}

// take returns what is to be stored: of runs of this process, those that are under way.
func (p *progress) take() []store.Progress {
	p.mu.Lock()
	news := p.news
	p.news = map[int64]store.Progress{}
	p.mu.Unlock()
	list := make([]store.Progress, 0, len(news))
	for _, said := range news {
		if said.Incarnation == "" || p.engine.under.flight(said.RunID) != nil {
			list = append(list, said)
		}
	}
	return list
}

// loop stores what is new, until ctx ends. What the store has not taken is tried again a
// second later, unless there is something newer by then.
func (p *progress) loop(ctx context.Context) {
	backoff := backoff{log: p.log, what: "storing the progress of runs"}
	for sleep(ctx, forever, p.wake) {
		list := p.take()
		if backoff.failed(ctx, p.storeAll(ctx, list)) {
			for _, said := range list {
				p.add(said, false)
			}
		}
		if !sleep(ctx, progressEvery) {
			return
		}
	}
}

func (p *progress) storeAll(ctx context.Context, list []store.Progress) error {
	for len(list) > 0 {
		page := list[:min(len(list), storeBatch)]
		list = list[len(page):]
		if _, err := call(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, p.store.SetProgress(ctx, page) }); err != nil {
			return err
		}
	}
	return nil
}
