package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xxljob/xxljob/internal/test/measure"
)

// bench is one measurement.
type bench struct {
	cfg   Config
	host  host
	meter measure.Meter

	// What the last audit has seen.
	last    time.Time // the last instant
	lastEnd time.Time // the last end of a run
}

// Run measures. command is printed as what was called. The report is not clean where the audit
// has found something; an error means that nothing was measured.
func Run(ctx context.Context, cfg Config, command string) (*Report, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	h, err := openHost(ctx, cfg)
	if err != nil {
		return nil, err
	}
	b := &bench{cfg: cfg, host: h}
	r, err := b.run(ctx, command)
	return r, errors.Join(err, h.close())
}

func (b *bench) run(ctx context.Context, command string) (*Report, error) {
	r := &Report{Command: command, At: time.Now().UTC().Truncate(time.Second), Config: b.cfg, Machine: measure.Proc{}.Machine()}
	var err error
	if r.Server, err = b.host.server(ctx); err != nil {
		return nil, err
	}
	b.meter = b.host.meter(ctx)
	switch b.cfg.Shape {
	case Steady:
		err = b.paced(ctx, r, b.cfg.Rate, true)
	case Herd:
		err = b.paced(ctx, r, b.cfg.Jobs, false)
	case Sparse:
		err = b.sparse(ctx, r)
	case Drain:
		err = b.drain(ctx, r)
	case Overload:
		err = b.overload(ctx, r)
	}
	r.Clean = r.Audit.Clean()
	return r, err
}

// on does something with a store of its own.
func (b *bench) on(ctx context.Context, do func(*backend) error) error {
	st, err := b.host.fresh(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(st), st.close())
}

// paced is the shapes steady and herd.
func (b *bench) paced(ctx context.Context, r *Report, jobs int, spread bool) error {
	return b.on(ctx, func(st *backend) error {
		p := &paced{bench: b, backend: st, jobs: jobs, spread: spread, report: r}
		if _, err := p.begin(ctx); err != nil {
			return err
		}
		return p.measure(ctx)
	})
}

// say tells of the progress.
func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.cfg.Log, format+"\n", args...) }
