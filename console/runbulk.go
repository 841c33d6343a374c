package console

// The same for many runs at once: kill, and run again.

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/store"
)

const (
	mostAtOnce = 500
	bulkWidth  = 8 // calls at a time
	bulkKill   = "kill"
	bulkAgain  = "again"
)

// bulkPage asks whether it is to be done, or says what has become of each run.
type bulkPage struct {
	Do    string
	Rows  []bulkRow
	Done  bool
	Ready int // how many it can be done to

	Resumed bool // somebody has had to log in
}

// bulkRow is one of the runs. Of one that the user does not see nothing is said but that it is
// not there.
type bulkRow struct {
	ID    int64
	Run   xxljob.Run
	Seen  bool
	Fault string // why it is not done, or was not
	New   int64  // the run that was made
}

// bulkRuns does something with many runs, once it was said that it is meant.
func (q *request) bulkRuns() error {
	do := q.Field("do")
	ids, err := q.chosenIDs()
	if err != nil {
		return err
	}
	if do != bulkKill && do != bulkAgain || len(ids) == 0 {
		return &web.Problem{Status: http.StatusUnprocessableEntity, Key: "runbulk.nothing"}
	}
	if len(ids) > mostAtOnce {
		return &web.Problem{Status: http.StatusUnprocessableEntity, Key: "runbulk.toomany", Values: []any{"n", len(ids), "most", mostAtOnce}}
	}
	list, err := q.Store.RunsByID(store.WithShortTexts(q.ctx, 0), ids)
	if err != nil {
		return err
	}
	p := bulkPage{Do: do, Resumed: q.Field("show") == showResumed}
	p.Done = q.Field("sure") == "yes" && !p.Resumed // it is asked again, whatever was said before
	for _, id := range ids {
		row := bulkRow{ID: id}
		i := slices.IndexFunc(list, func(r xxljob.Run) bool { return r.ID == id })
		switch {
		case i < 0 || !allowed(q.user, see, list[i].App):
			row.Fault = q.text("runbulk.notthere")
		default:
			row.Seen, row.Run = true, list[i]
			row.Fault = q.notForBulk(do, &row.Run)
		}
		if row.Fault == "" {
			p.Ready++
		}
		p.Rows = append(p.Rows, row)
	}
	if p.Done {
		_ = http.NewResponseController(q.W).SetWriteDeadline(time.Now().Add(5 * time.Minute)) // where the server has one
		q.doBulk(do, p.Rows)
	}
	return q.show("runbulk", http.StatusOK, p)
}

// notForBulk says why something is not done to a run, or "".
func (q *request) notForBulk(do string, r *xxljob.Run) string {
	switch {
	case !allowed(q.user, operate, r.App):
		return q.text("problem.forbidden.operate")
	case do == bulkKill && r.State.Ended():
		return q.text("runbulk.ended")
	}
	return ""
}

// doBulk does it to each run for which nothing speaks against it, a few at a time.
func (q *request) doBulk(do string, rows []bulkRow) {
	var wg sync.WaitGroup
	free := make(chan struct{}, bulkWidth)
	for i := range rows {
		if rows[i].Fault != "" {
			continue
		}
		free <- struct{}{}
		wg.Go(func() {
			defer func() {
				if v := recover(); v != nil {
					q.Logger.Error("console: a call for many runs has panicked", "request", q.ID, "run", rows[i].ID, "panic", v)
					rows[i].Fault = q.text("problem.panic")
				}
				<-free
			}()
			var err error
			if do == bulkKill {
				err = q.Scheduler.Kill(q.ctx, rows[i].ID)
			} else {
				rows[i].New, err = q.Scheduler.Again(q.ctx, q.grantsOf(), rows[i].ID)
			}
			if err != nil {
				p := asProblem(err)
				rows[i].Fault = strings.TrimSpace(q.text(p.Key, p.Values...) + " " + q.saidBy(p))
				if p.Status >= http.StatusInternalServerError {
					q.Logger.Warn("console: a run of several has failed", "request", q.ID, "do", do, "run", rows[i].ID, "error", err)
					rows[i].Fault += " " + q.text("bulk.unknown") + " " + q.text("problem.request", "id", q.ID)
				}
			}
		})
	}
	wg.Wait()
}

// chosenIDs are the runs of the form: a field each, or numbers with commas between them in one.
func (q *request) chosenIDs() (ids []int64, err error) {
	for _, text := range append(slices.Clone(q.R.PostForm["id"]), q.R.PostForm["ids"]...) {
		for one := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' }) {
			id, err := strconv.ParseInt(one, 10, 64)
			if err != nil || id <= 0 {
				return nil, web.BadRequest(fmt.Errorf("run %q", one))
			}
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
			if len(ids) > 4*mostAtOnce {
				return ids, nil // it is said that they are too many
			}
		}
	}
	return ids, nil
}

// IDs are those of the rows to which something is to be done, with commas between them.
func (b bulkPage) IDs() string {
	var list []string
	for _, r := range b.Rows {
		if r.Fault == "" {
			list = append(list, strconv.FormatInt(r.ID, 10))
		}
	}
	return strings.Join(list, ",")
}
