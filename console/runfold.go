package console

// A broadcast in the list of runs is one line where its parts would fill the screen: how many of them
// have ended how, with the error of one that has failed.

import (
	"context"
	"slices"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
)

const (
	foldFrom   = 4 // parts of a broadcast on a page
	foldReads  = 3 // of further runs, where a page has room since parts stand in one line
	foldAtOnce = 200
)

// folding counts the lines of runs.
type folding struct {
	parts map[int64]int // of each broadcast, by its trigger
	lines int
}

// grows reports whether another run takes another line.
func (f *folding) grows(r *xxljob.Run) bool {
	return r.Sharding.Total == 0 || f.parts[r.TriggerID] < foldFrom-1
}

func (f *folding) add(list ...xxljob.Run) {
	if f.parts == nil {
		f.parts = map[int64]int{}
	}
	for i := range list {
		r := &list[i]
		switch grows := f.grows(r); {
		case grows:
			f.lines++
		case f.parts[r.TriggerID] == foldFrom-1: // those before are in one line now
			f.lines -= foldFrom - 2
		}
		if r.Sharding.Total > 0 {
			f.parts[r.TriggerID]++
		}
	}
}

// foldedRuns is a page of a search on which each broadcast is one line. Where that leaves room, it is
// looked for further runs, but not for ever.
func foldedRuns(ctx context.Context, reader xxljob.RunReader, search xxljob.RunSearch) (runsFound, error) {
	out, err := searchRuns(ctx, reader, search)
	if err != nil {
		return out, err
	}
	var f folding
	f.add(out.runs...)
	search.Limit = foldAtOnce
	for reads := 0; reads < foldReads && f.lines < len(out.runs) && f.lines < runsOnAPage && out.to > 1 && !out.partial; reads++ {
		search.Before = out.to
		found, err := reader.SearchRuns(ctx, search)
		if err != nil {
			return out, err
		}
		out.examined += found.Examined
		out.searched, out.to, out.partial = found.SearchedTime, found.SearchedTo, found.SearchedTo > 1 && len(found.Runs) < foldAtOnce
		for i := range found.Runs {
			if f.lines == runsOnAPage && f.grows(&found.Runs[i]) { // it is the first of the next page
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
	return out, nil
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
	var out []runRow
	for _, row := range list {
		all := parts[row.TriggerID]
		if row.Sharding.Total == 0 || len(all) < foldFrom {
			out = append(out, row)
			continue
		}
		if slices.ContainsFunc(out, func(r runRow) bool { return r.Whole != nil && r.TriggerID == row.TriggerID }) {
			continue
		}
		w := wholeOf(all)
		shown := list[slices.IndexFunc(list, func(r runRow) bool { return r.ID == w.Ends[0].ID })]
		shown.Whole = w
		out = append(out, shown)
	}
	return out
}

// EachPart is the list with a line for each part of broadcasts.
func (p *page) EachPart() string {
	return p.q.With(map[string]string{"parts": "each", "seen": "", "said": ""})
}
