package bench

import (
	"context"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/measure"
	"github.com/xxljob/xxljob/store/memory"
)

// inMemory makes stores in the memory of this process.
type inMemory struct{}

func (inMemory) fresh(context.Context) (*backend, error) {
	// All runs are kept until they are audited.
	st := memory.New(memory.Retain(1<<30, 1<<30), memory.RetainBytes(1<<40))
	return &backend{
		store: st,
		plan: func(ctx context.Context, jobs []int64, n int) ([]int64, error) {
			ids := make([]int64, 0, n)
			now := time.Now()
			for i := range n {
				r, err := st.AddRun(ctx, jobs[i%len(jobs)], xxljob.Trigger{At: now})
				if err != nil {
					return nil, err
				}
				ids = append(ids, r.ID)
			}
			return ids, nil
		},
		settle: func(context.Context) error { return nil },
		close:  func() error { return nil },
	}, nil
}

func (inMemory) meter(context.Context) measure.Meter             { return measure.Meter{} }
func (inMemory) server(context.Context) (*measure.Server, error) { return nil, nil }
func (inMemory) close() error                                    { return nil }
