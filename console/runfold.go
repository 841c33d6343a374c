package console

// A broadcast in a list of runs is one line where its parts would fill the screen: how many of them
// have ended how, with the error of one that has failed. Lists are that of all runs, those of a job and
// those that a run has led to.

import (
	"context"
	"slices"
	"strconv"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/store"
)

const (
	foldFrom   = 4 // parts of a broadcast on a page
	foldReads  = 3 // of further runs, where a page has room since parts stand in one line
	foldAtOnce = 200
	foldLooks  = 20_000 // at so many runs, in all
)

// folding counts the lines of runs.
type folding struct {
	of    map[int64]*foldingParts // of each broadcast, by its trigger
	lines int
}

// foldingParts are the parts of a broadcast, and how many lines their runs take.
type foldingParts struct {
	known map[int]bool
	lines int
}

// folds reports whether the broadcast is one line with the run.
func (p *foldingParts) folds(r *xxljob.Run) bool {
	return len(p.known) >= foldFrom || len(p.known) == foldFrom-1 && !p.known[r.Sharding.Index]
}

// grows reports whether another run takes another line.
func (f *folding) grows(r *xxljob.Run) bool {
	p := f.of[r.TriggerID]
	return r.Sharding.Total == 0 || p == nil || !p.folds(r)
}

func (f *folding) add(list ...xxljob.Run) {
	if f.of == nil {
		f.of = map[int64]*foldingParts{}
	}
	for i := range list {
		r := &list[i]
		if r.Sharding.Total == 0 {
			f.lines++
			continue
		}
		p := f.of[r.TriggerID]
		if p == nil {
			p = &foldingParts{known: map[int]bool{}}
			f.of[r.TriggerID] = p
		}
		now := p.lines + 1
		if p.folds(r) {
			now = 1
		}
		f.lines += now - p.lines
		p.lines, p.known[r.Sharding.Index] = now, true
	}
}

// foldedRuns is a page of a search on which each broadcast is one line.
func foldedRuns(ctx context.Context, reader xxljob.RunReader, search xxljob.RunSearch) (runsFound, error) {
	out, err := searchRuns(ctx, reader, search)
	if err != nil {
		return out, err
	}
	return filledUp(ctx, reader, search, out, runsOnAPage), nil
}

// filledUp is a page of so many lines at most. Where broadcasts that are one line each leave room, it is
// looked for further runs, but not for ever: all reads together look at no more runs than one may, and
// where a further one fails the page has what was found before.
func filledUp(ctx context.Context, reader xxljob.RunReader, search xxljob.RunSearch, out runsFound, lines int) runsFound {
	var f folding
	f.add(out.runs...)
	search.Limit = foldAtOnce
	for reads := 0; reads < foldReads && f.lines < len(out.runs) && f.lines < lines && out.to > 1 && !out.partial; reads++ {
		if search.Before, search.Examine = out.to, foldLooks-out.examined; search.Examine <= 0 {
			break
		}
		found, err := reader.SearchRuns(ctx, search)
		if err != nil {
			break
		}
		out.examined += found.Examined
		out.searched, out.to, out.partial = found.SearchedTime, found.SearchedTo, found.SearchedTo > 1 && len(found.Runs) < foldAtOnce
		for i := range found.Runs {
			if f.lines == lines && f.grows(&found.Runs[i]) { // it is the first of the next page
				out.to, out.partial = out.runs[len(out.runs)-1].ID, false
				break
			}
			f.add(found.Runs[i])
			out.runs = append(out.runs, found.Runs[i])
		}
	}
	if out.next = ""; out.to > 1 {
		out.next = web.CursorOf("id", out.to)
	}
	return out
}

// foldedOf are the runs of a job for the list on its page, of which these are the newest, with as much of
// their texts: filled up as the list of all runs is where broadcasts are among them.
func (q *request) foldedOf(job int64, newest []xxljob.Run, texts int) []xxljob.Run {
	reader, ok := q.Store.(xxljob.RunReader)
	if !ok || len(newest) < runsOfAJob {
		return newest
	}
	out := runsFound{runs: newest, to: newest[len(newest)-1].ID}
	return filledUp(store.WithShortTexts(q.ctx, texts), reader, xxljob.RunSearch{JobIDs: []int64{job}}, out, runsOfAJob).runs
}

// folded are lines in which each broadcast of which there are so many parts is one: it stands where the
// newest of these stood, and shows the one that matters most.
func folded(list []runRow) []runRow {
	parts := map[int64][]xxljob.Run{}
	for i := range list {
		if r := &list[i]; r.Sharding.Total > 0 {
			parts[r.TriggerID] = append(parts[r.TriggerID], r.Run)
		}
	}
	wholes := map[int64]*wholeView{}
	for trigger, all := range parts {
		if w := wholeOf(all); w.Seen >= foldFrom {
			wholes[trigger] = w
		}
	}
	var out []runRow
	for _, row := range list {
		w := wholes[row.TriggerID]
		if row.Sharding.Total == 0 || w == nil {
			out = append(out, row)
			continue
		}
		if slices.ContainsFunc(out, func(r runRow) bool { return r.Whole != nil && r.TriggerID == row.TriggerID }) {
			continue
		}
		shown := list[slices.IndexFunc(list, func(r runRow) bool { return r.ID == w.Ends[0].ID })]
		shown.Whole = w
		out = append(out, shown)
	}
	return out
}

// EachPart is the list with a line for each part of broadcasts: the one that the page is, or that of the
// job's runs.
func (p *page) EachPart(job int64) string {
	if p.Name == "runs" {
		return p.q.With(map[string]string{"parts": "each", "seen": "", "said": ""})
	}
	return p.Root() + "runs?parts=each&job=" + strconv.FormatInt(job, 10)
}
