package dispatch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// finishApart stores results that the store has refused together, so that none holds up another. Of
// one that it refuses for ever the state is stored without its texts, which are what others can have
// put into it; where it refuses even that, the texts are not what is wrong, and the result is tried
// again as it is, beside all others.
func (f *finisher) finishApart(ctx context.Context, results []store.Result) error {
	backoff, began := loop.Backoff{Log: f.Logger, What: "storing results that the store has refused"}, time.Now()
	var alone, left []store.Result
	var why, err error
	times := map[int64]int{}
	for takes := false; ; takes = true {
		for range loop.RefusedTries {
			if alone, left, why, err = f.finishHalves(ctx, results, takes); err != nil || len(alone) == 0 {
				return err
			}
			for i := range alone {
				times[alone[i].RunID]++
			}
			results = append(slices.Clone(alone), left...)
			backoff.Failed(ctx, why)
			if !loop.Sleep(ctx, backoff.Delay()) {
				return ctx.Err()
			}
		}
		rest, err := f.finishWithoutTexts(ctx, results, times, why)
		if err == nil && len(left) > 0 && len(rest) < len(results) {
			results = rest // it does not refuse all: those that were not tried are
			continue
		}
		f.unstored.refuses(rest, began)
		f.leaveToLocked(rest)
		return err
	}
}

// finishWithoutTexts stores the states of those results without their texts that the store has refused
// alone often enough. It returns all others, and those of which it refuses that too, as they are.
func (f *finisher) finishWithoutTexts(ctx context.Context, results []store.Result, times map[int64]int, why error) (rest []store.Result, err error) {
	var bare []store.Result
	for i := range results {
		if times[results[i].RunID] >= loop.RefusedTries {
			bare = append(bare, WithoutTexts(results[i]))
		}
	}
	refused, left, _, err := f.finishHalves(ctx, bare, false)
	still := make(map[int64]bool, len(refused)+len(left))
	for _, r := range slices.Concat(refused, left) {
		still[r.RunID] = true
	}
	for i := range results {
		switch r := &results[i]; {
		case times[r.RunID] < loop.RefusedTries || still[r.RunID]:
			rest = append(rest, *r)
		case err == nil:
			f.logTextsDropped(ctx, r, why)
		}
	}
	return rest, err
}

// WithoutTexts is a result without its texts: what is stored where the store refuses these for ever.
func WithoutTexts(r store.Result) store.Result {
	r.HandleMsg, r.TriggerMsg, r.ProgressText = textRefused, "", ""
	return r
}

// logTextsDropped says that the store has taken a result so only.
func (f *finisher) logTextsDropped(ctx context.Context, r *store.Result, why error) {
	f.Logger.ErrorContext(ctx, "xxljob: the store refuses the texts of a result for ever: the state is stored without them", "run", r.RunID, "state", r.State.String(), "error", why)
}

// textRefused is the handle_msg of a run whose result the store has refused with its texts.
const textRefused = "(the store refuses the text of this result)"

// finishHalves stores results, and returns those that the store has refused alone, and why. left
// are those that were not tried, since it seems to refuse all; takes says that it is known not to.
func (f *finisher) finishHalves(ctx context.Context, results []store.Result, takes bool) (alone, left []store.Result, why, err error) {
	backoff := loop.Backoff{Log: f.Logger, What: "storing results"}
	tried := 0
	_, _, err = loop.Halve(results, func(part []store.Result) error {
		began := time.Now()
		call := func(ctx context.Context) (storeAnswer, error) { return answerOf(f.finishAgain(ctx, part)) }
		answer, err := loop.CallUntil(ctx, &backoff, call, func(ctx context.Context) (storeAnswer, error) {
			f.unstored.failed(part, began)
			return call(ctx)
		})
		f.unstored.over(part)
		switch {
		case answer.refused != nil && len(part) > 1:
			return answer.refused
		case answer.refused != nil:
			tried++
			if alone, why = append(alone, part[0]), answer.refused; len(alone) >= loop.RefusedFew && !takes {
				return errAllRefused
			}
			return answer.refused
		case err == nil || errors.Is(err, store.ErrLocked):
			tried, takes = tried+len(part), true
			f.took(part, answer.accepted, err != nil)
			return nil
		}
		return err
	})
	if err == errAllRefused {
		err = nil
	}
	return alone, results[tried:], why, err
}
