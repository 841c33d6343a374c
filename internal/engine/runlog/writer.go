package runlog

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/internal/urgent"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Lines of runs of this process on their way to where Config.Logs says. Input: lines of
// executors (OpenLog), results that wait for them. Output: batches, to the store or to the sink
// of the user's, each tried again until it is taken. It is one loop, so one call at a time.

// Writer has lines written. Its methods may be called where it is nil, which keeps nothing.
type Writer struct {
	*core.Core
	Book *logBook
	out  logOutlet

	batch []logChunk // of the loop: what is being written
}

// logOutlet takes batches.
type logOutlet interface {
	// write writes a batch, or returns an error after which it is called with the same one. It
	// returns how many bytes it has written, and the runs that it has refused.
	write(ctx context.Context, batch []logChunk) (bytes int, refused []int64, err error)
}

func NewWriter(s *core.Core, panics *guard.Log) *Writer {
	cfg := s.Cfg.Logs
	k := &Writer{Core: s, Book: NewBook(cfg)}
	switch {
	case cfg.Sink != nil:
		k.out = &sinkOutlet{sink: cfg.Sink, panics: panics}
	case cfg.InStore:
		logs, _ := core.LogsIn(s.Store) // New has refused a store that keeps none
		k.out = &storeOutlet{Core: s, store: logs, perJob: cfg.JobBytes}
	default:
		return nil
	}
	return k
}

// Open returns what takes the lines of a run at an executor of this process, and what is called
// when there will be no more. It is called before the handler is, as the flight is over once the
// run is recorded, be the handler still at it or not.
func (k *Writer) Open(l *core.StartLog, run, job int64, app string) (write func(time.Time, slog.Level, string), end func()) {
	write = func(at time.Time, level slog.Level, lines string) {
		if r := k.Book.of(l, run, job, app); r != nil {
			r.write(store.LogLine{Time: at, Level: level, Text: lines})
		}
	}
	return write, func() { k.Book.returned(l) }
}

// Apart are the results of runs whose lines are all written, and the others with the lines that
// these are to wait for.
func (k *Writer) Apart(reqs []wire.CallbackRequest) (ready, others []wire.CallbackRequest, goals map[int64]logGoal) {
	if k == nil || len(reqs) == 0 {
		return reqs, nil, nil
	}
	runs := make([]int64, len(reqs))
	for i := range reqs {
		runs[i] = reqs[i].LogID
	}
	if goals = k.Book.goals(runs); goals == nil {
		return reqs, nil, nil
	}
	for _, r := range reqs {
		if _, waits := goals[r.LogID]; waits {
			others = append(others, r)
		} else {
			ready = append(ready, r)
		}
	}
	return ready, others, goals
}

// Loop writes what is due, until ctx ends.
func (k *Writer) Loop(ctx context.Context) {
	backoff := loop.Backoff{Log: k.Logger, What: "writing the logs of runs"}
	for {
		now := time.Now()
		if wait := k.Book.due(now); k.batch == nil && wait > 0 {
			if !loop.Sleep(ctx, wait, k.Book.wake) {
				return
			}
			continue
		}
		rest, err := k.writeSome(ctx)
		if backoff.Failed(ctx, err) {
			rest = backoff.Delay()
		}
		if !loop.Sleep(ctx, rest) {
			return
		}
	}
}

// writeSome writes one batch. It returns how long to rest after it, so that there is no more of
// them than Config.Logs says.
func (k *Writer) writeSome(ctx context.Context) (rest time.Duration, err error) {
	if k.batch == nil {
		k.batch = k.Book.take()
	}
	began := time.Now()
	n, refused, err := k.out.write(ctx, k.batch)
	if err != nil {
		return 0, err
	}
	now := time.Now()
	until := core.Later(now, began.Add(time.Duration(n)*time.Second/time.Duration(k.Cfg.Logs.BytesPerSecond)))
	k.Book.written(k.batch, refused, until)
	k.batch = nil
	return until.Sub(now), nil
}

// Last writes what is left, at Stop, once the loop has ended and handlers have too.
func (k *Writer) Last(ctx context.Context) {
	if k == nil {
		return
	}
	ctx, cancel := context.WithTimeout(urgent.Unmark(ctx), logPatient)
	defer cancel()
	for k.batch != nil || k.Book.due(time.Now()) < loop.Forever {
		if _, err := k.writeSome(ctx); err != nil {
			k.Logger.Warn("xxljob: stopped with lines of runs' logs that could not be written", "bytes", k.Book.State().Waiting, "error", err)
			return
		}
	}
}

// storeOutlet is the store.
type storeOutlet struct {
	*core.Core
	store  store.LogStore
	perJob int64
	pages  pageWriter
	rarely loop.LogLimiter

	// Of the batch that is being written: the pages that are left, the runs whose pages were refused
	// so far, and how often the store has refused some pages alone.
	made    []store.LogPage
	refused []int64
	times   int
}

func (o *storeOutlet) write(ctx context.Context, batch []logChunk) (n int, refused []int64, err error) {
	if o.made == nil {
		for i := range batch {
			pages, err := o.pages.pages(batch[i].RunLines, batch[i].notice)
			if err != nil {
				return 0, nil, err
			}
			o.made = append(o.made, pages...)
		}
	}
	for len(o.made) > 0 {
		page := o.made[:min(len(o.made), store.MostLogPages)]
		err := o.add(ctx, page)
		if errors.Is(err, store.ErrRefused) {
			err = o.addHalves(ctx, page)
		}
		if err != nil {
			return 0, nil, err
		}
		for i := range page {
			n += len(page[i].Content)
		}
		o.made = o.made[len(page):]
	}
	refused = o.refused
	o.made, o.refused, o.times = nil, nil, 0
	return n, refused, nil
}

// add adds pages.
func (o *storeOutlet) add(ctx context.Context, pages []store.LogPage) error {
	no, err := loop.Call(ctx, func(ctx context.Context) ([]int64, error) {
		return o.store.AddLogPages(ctx, pages, o.perJob)
	})
	o.refused = append(o.refused, no...)
	return err
}

// addHalves adds each half by itself of pages that the store has refused together. Where it has
// refused some alone three times these are given up, and their logs are cut, so that those of other
// runs are written; not where it seems to refuse all.
func (o *storeOutlet) addHalves(ctx context.Context, pages []store.LogPage) error {
	tried, taken := 0, false
	alone, why, err := loop.Halve(slices.Clone(pages), func(part []store.LogPage) error {
		err := o.add(ctx, part)
		switch {
		case err == nil:
			tried, taken = tried+len(part), true
		case errors.Is(err, store.ErrRefused) && len(part) == 1:
			if tried++; tried >= loop.RefusedFew && !taken {
				return fmt.Errorf("nothing is taken: %v", err)
			}
		}
		return err
	})
	if err != nil {
		rand.Shuffle(len(pages), func(i, k int) { pages[i], pages[k] = pages[k], pages[i] }) // others come first the next time
		return err
	}
	if o.times++; why != nil && o.times < loop.RefusedTries {
		return fmt.Errorf("%d pages alone: %v", len(alone), why)
	}
	for i := range alone {
		o.refused = append(o.refused, alone[i].RunID)
	}
	if why != nil && o.rarely.Allow("refused") {
		o.Logger.ErrorContext(ctx, "xxljob: the store refuses lines of runs' logs for ever: these logs are cut", "pages", len(alone), "run", alone[0].RunID, "error", why)
	}
	return nil
}

var errSinkHangs = errors.New("LogSink.WriteLogs has not returned")

// sinkOutlet is the sink of the user's. One call is under way at most.
type sinkOutlet struct {
	sink   core.LogSink
	panics *guard.Log
	under  *guard.Future[struct{}] // until its answer is taken in
}

func (o *sinkOutlet) write(ctx context.Context, batch []logChunk) (n int, _ []int64, err error) {
	if o.under == nil {
		o.begin(ctx, batch)
	}
	late, cancel := context.WithTimeout(ctx, loop.CallTimeout+time.Second) // one that goes by its ctx has an error of its own
	defer cancel()
	switch {
	case o.under.Wait(late):
	case ctx.Err() != nil:
		return 0, nil, ctx.Err()
	default:
		return 0, nil, errSinkHangs
	}
	_, err = o.under.Answer()
	if o.under = nil; err != nil {
		return 0, nil, err
	}
	for i := range batch {
		for _, line := range batch[i].Lines {
			n += len(line.Text)
		}
	}
	return n, nil, nil
}

func (o *sinkOutlet) begin(ctx context.Context, batch []logChunk) {
	lines := make([]store.RunLines, len(batch))
	for i := range batch {
		lines[i] = batch[i].RunLines
		lines[i].Lines = append([]store.LogLine(nil), lines[i].Lines...)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loop.CallTimeout)
	o.under = guard.Start(o.panics, "LogSink.WriteLogs", func() (none struct{}, err error) { return none, o.sink.WriteLogs(ctx, lines) }, func(struct{}, error) { cancel() })
}

// Pages of logs in the store: lines, compressed. Input: lines. Output: pages, and the lines
// that they have.

// pageBytes is how many bytes of lines a page has before it is compressed, but for a line that
// is longer.
const pageBytes = 32 << 10

// pageWriter makes pages. It is not safe for concurrent use.
type pageWriter struct {
	flate *flate.Writer
	text  []byte
	out   bytes.Buffer
}

// pages are the lines of a run as pages.
func (w *pageWriter) pages(r store.RunLines, notice bool) (list []store.LogPage, err error) {
	first := r.First
	for i, line := range r.Lines {
		w.text = append(append(w.text, line.Text...), '\n')
		if i == len(r.Lines)-1 || len(w.text)+len(r.Lines[i+1].Text) >= pageBytes {
			page := store.LogPage{RunID: r.RunID, FirstLine: first, LastLine: r.First + i, Size: len(w.text), Notice: notice}
			if page.Content, err = w.compressed(w.text); err != nil {
				return nil, err
			}
			list, first, w.text = append(list, page), r.First+i+1, w.text[:0]
		}
	}
	if cap(w.text) > 16*pageBytes {
		w.text = nil
	}
	return list, nil
}

func (w *pageWriter) compressed(text []byte) ([]byte, error) {
	w.out.Reset()
	if w.flate == nil {
		var err error
		if w.flate, err = flate.NewWriter(&w.out, flate.BestSpeed); err != nil {
			return nil, err
		}
	} else {
		w.flate.Reset(&w.out)
	}
	if _, err := w.flate.Write(text); err != nil {
		return nil, err
	}
	err := w.flate.Close()
	return bytes.Clone(w.out.Bytes()), err
}

// linesOf are the lines of a page from one on, as far as they are within its first bytes: as many
// as it says that it has, but no more than LogBytes and pageBytes, beyond which no page of ours
// goes. The numbers of its lines may be any.
func linesOf(p store.LogPage, from int) (string, error) {
	in := flate.NewReader(bytes.NewReader(p.Content))
	text, err := io.ReadAll(io.LimitReader(in, int64(min(p.Size, core.LogBytes+pageBytes))))
	if err != nil {
		return "", fmt.Errorf("the page with line %d: %w", p.FirstLine, err)
	}
	lines := errs.PlainText(string(text))
	for n := p.FirstLine; n < from && lines != ""; n++ {
		_, lines, _ = strings.Cut(lines, "\n")
	}
	return lines, nil
}
