package fairqueue

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/loop"
)

// How what has come into a queue is stored, one batch after the other. Input: batches.
// Output: parcels that are done, have failed, or are to be tried again.

const (
	// splitPatience is how long a batch that has failed is done app by app, and
	// requestPatience how long what has failed of these is done request by request.
	splitPatience   = 2 * loop.CallTimeout
	requestPatience = 500 * time.Millisecond
	// splitTries is how many of these may fail before one works.
	splitTries = 8
)

// Loop does what comes together, one batch after the other, with a pause after each, until
// ctx ends. What has come by then is done as well, up to the first error; so do bounds its
// own calls, and is not ended with ctx.
func (in *Queue[T]) Loop(ctx context.Context, pause time.Duration, backoff loop.Backoff, do func(context.Context, []*T) error) {
	for more := true; more; {
		more = loop.Sleep(ctx, loop.Forever, in.wake)
		for batch := in.take(); len(batch) > 0; batch = in.take() {
			err := in.store(ctx, batch, do, backoff.Log)
			wait := pause
			if backoff.Failed(ctx, err) {
				wait = max(pause, backoff.Delay())
			}
			if more = loop.Sleep(ctx, wait) && more; !more && err != nil {
				return
			}
		}
	}
}

// part is what a batch has of one line, or of one of its requests.
type part[T any] struct {
	pieces []piece[T]
	err    error
	faulty bool // it has failed by itself, after others had not
}

// store does a batch. Should that fail, it does what each app has sent by itself, so that
// nobody pays for what is wrong with others, and of what has failed then each request. One
// that fails though others do not is given up; the others stay, where that is wanted, to be
// tried again. It returns an error where nothing could be done.
func (in *Queue[T]) store(ctx context.Context, batch []piece[T], do func(context.Context, []*T) error, log *slog.Logger) error {
	parts := split(batch, func(p piece[T]) *line[T] { return p.line })
	err := do(context.WithoutCancel(ctx), itemsOf(batch))
	if err == nil {
		for _, own := range parts {
			in.finish(own.pieces, nil, false)
		}
		return nil
	}
	for i := range parts {
		parts[i].err = err
	}
	works := false
	if len(parts) > 1 {
		parts, works = in.each(ctx, parts, splitPatience, false, do)
	}
	var requests []part[T]
	for _, own := range parts {
		for _, p := range split(own.pieces, func(p piece[T]) *Request[T] { return p.Request }) {
			p.err = own.err
			requests = append(requests, p)
		}
	}
	if works && len(requests) > 0 || len(requests) > 1 {
		requests, works = in.each(ctx, requests, requestPatience, works, do)
	}
	for _, own := range requests {
		in.finish(own.pieces, own.err, in.most.Retries && !own.faulty)
		if app := own.pieces[0].line.app; own.faulty && in.said.Allow(app) {
			log.Warn("xxljob: could not store what an app has sent", "app", app, "error", own.err)
		}
	}
	if works {
		return nil
	}
	return err
}

// each does parts by themselves: not for as long as there are parts where the store does not
// answer at all, and not when the loop is to end. It begins with another one each time, lest
// the same ones always use up the patience. It is done with those that work, and returns
// the rest.
func (in *Queue[T]) each(ctx context.Context, parts []part[T], patience time.Duration, works bool, do func(context.Context, []*T) error) ([]part[T], bool) {
	began, failures := time.Now(), 0
	in.lead++
	first := in.lead % len(parts)
	var rest []part[T]
	for _, own := range slices.Concat(parts[first:], parts[:first]) {
		if failures < splitTries && time.Since(began) < patience && ctx.Err() == nil {
			own.err = do(context.WithoutCancel(ctx), itemsOf(own.pieces))
			if own.err == nil {
				works, failures = true, 0
				in.finish(own.pieces, nil, false)
				continue
			}
			failures++
			own.faulty = works
		}
		rest = append(rest, own)
	}
	return rest, works
}

// split puts together the pieces that have something in common, in the order of the first
// ones.
func split[T any, K comparable](batch []piece[T], by func(piece[T]) K) (parts []part[T]) {
	place := map[K]int{}
	for _, p := range batch {
		i, ok := place[by(p)]
		if !ok {
			i = len(parts)
			place[by(p)], parts = i, append(parts, part[T]{})
		}
		parts[i].pieces = append(parts[i].pieces, p)
	}
	return parts
}

func itemsOf[T any](batch []piece[T]) (items []*T) {
	for _, p := range batch {
		items = append(items, p.items...)
	}
	return items
}

// finish takes in how pieces of one line fared, and tells those who wait for their parcels.
// What has failed and is to be kept goes behind what has not been tried.
func (in *Queue[T]) finish(own []piece[T], err error, keep bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	l := own[0].line
	for _, mine := range own {
		p, taken := mine.Request, mine.Request.taken
		if taken == 0 {
			continue // with an earlier piece
		}
		p.taken = 0
		waits := taken < len(p.items) // the rest of it does
		if err == nil {
			p.items = p.items[taken:]
		} else {
			p.answer(err)
		}
		switch {
		case waits && err == nil:
		case waits && keep:
			i := slices.Index(l.waiting, p)
			l.waiting = append(slices.Delete(l.waiting, i, i+1), p)
		case waits:
			in.drop(l, slices.Index(l.waiting, p), err)
		case keep && err != nil:
			in.queue(l)
			l.waiting = append(l.waiting, p)
		default:
			in.end(p, err)
		}
	}
}
