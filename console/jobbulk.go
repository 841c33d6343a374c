package console

// What is done with several jobs at once: each is looked at as if it were the only one, and each
// has its own result.

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
)

// bulkView is the page with the results, or one that asks before: whether it is meant, or which tags.
type bulkView struct {
	Do      string
	Results []bulkResult
	Good    int
	Back    string // where one came from
	Asks    bool   // nothing was done yet
	IDs     []int64
	Fault   string
	Tags    *tagView // which are asked for
	Resumed bool     // somebody has had to log in
}

// bulkResult is what has become of a job.
type bulkResult struct {
	ID    int64
	Name  string // empty for one that is not there, or that the user may not see
	App   string
	Run   int64 // that was made
	Good  bool
	Words string
	Tags  []string // that it has
}

// Whether reports whether the page asks whether it is meant, and no more.
func (v bulkView) Whether() bool { return v.Asks && v.Do != "remove" && v.Tags == nil }

// bulkAct does something with a job, and says what it was and which run it has made, if any.
type bulkAct func(context.Context, *xxljob.Job) (did string, run int64, err error)

// bulkDo is what can be done, and who may.
func (q *request) bulkDo(do string, tags *tagView) (need action, act bulkAct) {
	plainly := func(f func(context.Context, int64) error) bulkAct {
		return func(ctx context.Context, j *xxljob.Job) (string, int64, error) { return do, 0, f(ctx, j.ID) }
	}
	switch do {
	case "start":
		return operate, plainly(q.Scheduler.StartJob)
	case "stop":
		return operate, plainly(q.Scheduler.StopJob)
	case "once":
		return operate, func(ctx context.Context, j *xxljob.Job) (string, int64, error) {
			ids, err := q.Scheduler.Trigger(ctx, q.grantsOf(), j.ID, xxljob.Trigger{})
			if err != nil {
				return do, 0, err
			}
			return do, ids[0], nil
		}
	case "tag":
		return edit, func(ctx context.Context, j *xxljob.Job) (string, int64, error) { return q.retag(ctx, j, tags) }
	case "remove":
		return edit, plainly(q.Scheduler.RemoveJob)
	}
	return 0, nil
}

// bulk does something with the jobs that are ticked.
func (q *request) bulk() error {
	ids, err := q.ticked()
	if err != nil {
		return err
	}
	v := bulkView{Do: q.Field("do"), Back: web.OwnPage(q.Field("back")), IDs: ids, Resumed: q.Field("show") == showResumed}
	if v.Resumed { // it is asked again, whatever was said before
		q.R.PostForm.Del("sure")
		q.R.PostForm.Del("count")
	}
	if v.Back == "" {
		v.Back = "jobs"
	}
	jobs, err := q.briefly().jobsByID(ids)
	if err != nil {
		return err
	}
	tags, asks := q.readTags(jobs)
	need, act := q.bulkDo(v.Do, tags)
	switch {
	case act == nil:
		return web.BadRequest(errors.New("there is no such thing to do"))
	case v.Do == "tag" && asks:
		return q.askForTags(&v, tags, jobs)
	case v.Do == "remove" && q.Field("count") != strconv.Itoa(len(ids)):
		return q.askToRemove(&v, jobs)
	case v.Do != "tag" && v.Do != "remove" && q.Field("sure") != "yes":
		return q.askWhether(&v, jobs, need)
	}
	q.bulkAll(&v, jobs, need, act)
	return q.show("bulkjobs", http.StatusOK, v)
}

// bulkAll does it with each of the jobs with which the user may.
func (q *request) bulkAll(v *bulkView, jobs map[int64]xxljob.Job, need action, act bulkAct) {
	_ = http.NewResponseController(q.W).SetWriteDeadline(time.Now().Add(5 * time.Minute)) // where the server has one
	for _, id := range v.IDs {
		r := bulkResult{ID: id}
		job, there := jobs[id]
		switch {
		case !there || !allowed(q.user, see, job.App):
			r.Words = q.text("problem.notfound")
		case !allowed(q.user, need, job.App):
			r.Name, r.Words = job.Name, q.text(forbidden(need).Key)
		default:
			r.Name = job.Name
			did, run, err := act(q.ctx, &job)
			r.Run, r.Good, r.Words = run, err == nil, q.bulkWords(did, err)
		}
		if r.Good {
			v.Good++
		}
		v.Results = append(v.Results, r)
	}
}

// ask fills in the jobs of a page that asks before anything is done.
func (v *bulkView) ask(q *request, jobs map[int64]xxljob.Job) {
	v.Asks = true
	for _, id := range v.IDs {
		r := bulkResult{ID: id}
		if job, there := jobs[id]; there && allowed(q.user, see, job.App) {
			r.Name, r.App, r.Tags = job.Name, job.App, job.Tags
		}
		v.Results = append(v.Results, r)
	}
}

// askWhether asks whether it is meant, and says of each job what would become of it.
func (q *request) askWhether(v *bulkView, jobs map[int64]xxljob.Job, need action) error {
	v.ask(q, jobs)
	for i := range v.Results {
		r := &v.Results[i]
		job := jobs[r.ID]
		switch {
		case r.Name == "":
			r.Words = q.text("problem.notfound")
		case !allowed(q.user, need, job.App):
			r.Words = q.text(forbidden(need).Key)
		case v.Do == "start" && job.Schedule.IsManual():
			r.Words = q.text("problem.manual")
		case v.Do == "start" && !job.Stopped, v.Do == "stop" && job.Stopped:
			r.Words = q.text("bulk.already." + v.Do)
		default:
			r.Good, r.Words = true, q.text("bulk.will."+v.Do)
			v.Good++
		}
	}
	return q.show("bulkjobs", http.StatusOK, v)
}

// askToRemove asks for the number of the jobs, so that nobody removes many by one click.
func (q *request) askToRemove(v *bulkView, jobs map[int64]xxljob.Job) error {
	v.ask(q, jobs)
	status := http.StatusOK
	if q.R.PostForm.Has("count") {
		status, v.Fault = http.StatusUnprocessableEntity, q.text("bulk.count.other")
	}
	return q.show("bulkjobs", status, v)
}

// bulkWords are what is said of a job after it was tried.
func (q *request) bulkWords(do string, err error) string {
	switch {
	case err == nil:
		return q.text("bulk.done." + do)
	case errors.Is(err, xxljob.ErrManual):
		return q.text("problem.manual")
	case errors.Is(err, xxljob.ErrNeverFires):
		return q.text("problem.neverfires")
	}
	if faults := xxljob.FieldErrors(err); len(faults) > 0 {
		return q.bulkFault(faults[0])
	}
	p := asProblem(err)
	if p.Status >= http.StatusInternalServerError {
		q.Logger.Warn("console: a job of several has failed", "request", q.ID, "do", do, "error", err)
		return q.text(p.Key, p.Values...) + " " + q.text("bulk.unknown")
	}
	return q.text(p.Key, p.Values...)
}

// bulkFault is what the scheduler has against a job as it would be, with the field that it is
// about: that may be another one than was changed, where the job was made with other settings.
func (q *request) bulkFault(e *xxljob.FieldError) string {
	switch f := q.fields[cutIndex(e.Field)]; {
	case e.Field == "Tags":
		return q.text("field.tags") + ": " + q.tagsText(e)
	case f != nil:
		return q.text("field."+f.name) + ": " + q.faultText("fault.invalid.", f.name, e)
	}
	return q.faultText("", "", e)
}

// ticked are the IDs of the jobs that are ticked, each once, in order.
func (q *request) ticked() (ids []int64, err error) {
	for _, text := range q.R.PostForm["id"] {
		for _, part := range separate(text) {
			id, err := strconv.ParseInt(part, 10, 64)
			if err != nil || id <= 0 {
				return nil, web.BadRequest(errors.New("an id is none"))
			}
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
			if len(ids) > mostRows {
				return nil, &web.Problem{Status: http.StatusRequestEntityTooLarge, Key: "bulk.many", Values: []any{"most", mostRows}}
			}
		}
	}
	if len(ids) == 0 {
		return nil, &web.Problem{Status: http.StatusUnprocessableEntity, Key: "bulk.nojobs"}
	}
	return ids, nil
}
