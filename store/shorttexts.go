package store

// Lists without the long texts of what they list.

import (
	"context"
	"strings"

	"github.com/xxljob/xxljob/internal/errs"
)

// shortKey is the key of how long texts are in lists that are read with a context.
type shortKey struct{}

// WithShortTexts returns a context with which lists have no more of long texts than their first
// characters: so many of Run.Param, Run.HandleMsg and Job.Param, and nothing of Run.TriggerMsg,
// Run.Addresses and Job.GlueSource. Zero is none of any. So a page that shows thousands of runs, each
// with a parameter of 64 KiB, reads none of these. Of Job.ChildKeys and Job.AfterKeys, which may take
// as much, they have the first each, which tells that there are any: see WithLinks. The lists are what RunsByID, Runs and Tree, Jobs,
// SearchJobs and all of RunReader that returns runs answer; other methods go on as without. What
// is chosen, and in which order, does not depend on it. Such a run or job is for the eye: stored
// again, it would lose its texts. It panics where ctx is nil, as WithActor does. Stores read it
// with ShortTexts.
func WithShortTexts(ctx context.Context, most int) context.Context {
	if ctx == nil {
		panic(errs.ErrNoContext)
	}
	return context.WithValue(ctx, shortKey{}, max(most, 0))
}

// linksKey is the key of whether lists that are read with a context have all links of jobs.
type linksKey struct{}

// WithLinks returns a context with which lists of jobs have all of Job.ChildKeys and Job.AfterKeys, also
// with WithShortTexts: for who follows these from job to job. It panics where ctx is nil. Stores read it
// with ShortLinks.
func WithLinks(ctx context.Context) context.Context {
	if ctx == nil {
		panic(errs.ErrNoContext)
	}
	return context.WithValue(ctx, linksKey{}, true)
}

// ShortLinks, for authors of stores, reports whether lists have no more than the first of a job's
// ChildKeys and AfterKeys. See WithLinks.
func ShortLinks(ctx context.Context) bool {
	_, short := ShortTexts(ctx)
	return short && ctx.Value(linksKey{}) == nil
}

// ShortTexts, for authors of stores, returns how many characters lists have of a text, and whether
// there is such a bound. See WithShortTexts.
func ShortTexts(ctx context.Context) (most int, short bool) {
	if ctx == nil {
		return 0, false
	}
	most, short = ctx.Value(shortKey{}).(int)
	return most, short
}

// ShortenTexts, for authors of stores, leaves of the texts of the run what a list has of them. See
// WithShortTexts.
func (r *Run) ShortenTexts(most int) {
	r.Param, r.HandleMsg, r.TriggerMsg, r.Addresses = first(r.Param, most), first(r.HandleMsg, most), "", nil
}

// ShortenTexts, for authors of stores, leaves of the texts of the job what a list has of them. See
// WithShortTexts.
func (j *Job) ShortenTexts(most int) { j.Param, j.GlueSource = first(j.Param, most), "" }

// ShortenLinks, for authors of stores, leaves of the keys of other jobs what a list has of them. See
// WithLinks.
func (j *Job) ShortenLinks() {
	j.ChildKeys, j.AfterKeys = j.ChildKeys[:min(len(j.ChildKeys), 1)], j.AfterKeys[:min(len(j.AfterKeys), 1)]
}

// first are the first characters of a text. What is left holds nothing of what is cut off.
func first(text string, most int) string {
	for at := range text {
		if most--; most < 0 {
			return strings.Clone(text[:at])
		}
	}
	return text
}
