package xxljob

// What an executor elsewhere says of a run, when it is asked.

import (
	"context"

	"github.com/xxljob/xxljob/wire"
)

// answerAbout is what an executor has said about a run: of the run itself, where it
// is one of ours, otherwise of its job.
type answerAbout struct {
	state wire.RunState // empty from third-party executors
	boot  string        // of the process that says so
	busy  bool          // the job is, with whatever run
}

// askAboutRun asks about a run.
func askAboutRun(ctx context.Context, s *shared, exec wire.Executor, r Run) (answerAbout, error) {
	// The estimate of the store's time may be late, and this call takes its time.
	ago := s.clock.now().Sub(r.Started) + 2*s.cfg.HTTP.CallTimeout
	ret, err := exec.IdleBeat(ctx, wire.IdleBeatRequest{
		JobID: r.JobID, LogID: r.ID, LogDateTime: r.Created.UnixMilli(), StartToken: r.Token,
		StartedAgo: max(ago, 1).Milliseconds(), BootID: r.BootID,
	})
	if err == nil && ret.Unauthorized() {
		err = refusedBy(r.Address, ret.Msg)
	}
	if err != nil {
		return answerAbout{}, err
	}
	return answerAbout{state: ret.RunState, boot: ret.BootID, busy: !ret.OK()}, nil
}
