package console

// Tags of several jobs at once: some are added, some are taken off, and each job keeps its others.

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
)

// tagsOffered is how many tags a page offers to take off.
const tagsOffered = 100

// tagView is the form that asks which tags.
type tagView struct {
	Add   string // as it was typed
	Fault string // of that
	Off   []tagOffer
	More  bool // there are more than are offered

	add, off []string
}

// tagOffer is a tag that can be taken off, and how many of the jobs have it.
type tagOffer struct {
	Tag    string
	N      int
	Ticked bool
}

// readTags reads which tags are to be added and taken off. It reports whether that has still to be
// asked, be it that something is wrong with it.
func (q *request) readTags(jobs map[int64]xxljob.Job) (v *tagView, asks bool) {
	v = &tagView{Add: q.Field("add"), off: q.R.PostForm["off"]}
	typed := xxljob.Job{Name: "-", Handler: "-"}
	_ = tagList("tags", "Tags", func(j *xxljob.Job) *[]string { return &j.Tags }).set(&formTexts{job: &typed}, v.Add) // never fails
	v.add = typed.Tags
	if q.Field("sure") == "" {
		asks = true
	} else if v.Fault = q.tagFault(&typed, v); v.Fault != "" {
		asks = true
	}
	if asks {
		v.offer(q, jobs)
	}
	return v, asks
}

// tagFault is what is wrong with a change of tags, whatever job it is of.
func (q *request) tagFault(typed *xxljob.Job, v *tagView) string {
	if len(v.add)+len(v.off) == 0 {
		return q.text("bulk.tag.nothing")
	}
	for _, e := range xxljob.FieldErrors(typed.Validate()) {
		if e.Field == "Tags" {
			return q.tagsText(e)
		}
	}
	for _, tag := range v.add {
		if slices.Contains(v.off, tag) {
			return q.text("bulk.tag.both", "tag", web.Visible(tag))
		}
	}
	return ""
}

// tagsText is a fault of tags in words: of one of them, or that there are too many.
func (q *request) tagsText(e *xxljob.FieldError) string {
	if _, err := strconv.Atoi(e.Value); err == nil && e.Code == "too-long" { // it is their number
		return q.text("fault.invalid.tags")
	}
	return q.faultText("fault.invalid.", "tags", e)
}

// offer fills in the tags of the jobs that the user may edit, those that most of them have first,
// and those that were ticked already.
func (v *tagView) offer(q *request, jobs map[int64]xxljob.Job) {
	counts := map[string]int{}
	for _, j := range jobs {
		if allowed(q.user, edit, j.App) {
			for _, tag := range j.Tags {
				counts[tag]++
			}
		}
	}
	for tag, n := range counts {
		v.Off = append(v.Off, tagOffer{tag, n, slices.Contains(v.off, tag)})
	}
	slices.SortFunc(v.Off, func(a, b tagOffer) int {
		if a.Ticked != b.Ticked {
			return map[bool]int{true: -1, false: 1}[a.Ticked]
		}
		return cmp.Or(b.N-a.N, strings.Compare(a.Tag, b.Tag))
	})
	v.More = len(v.Off) > tagsOffered
	v.Off = v.Off[:min(len(v.Off), tagsOffered)]
}

// askForTags asks which tags.
func (q *request) askForTags(v *bulkView, tags *tagView, jobs map[int64]xxljob.Job) error {
	v.Tags = tags
	v.ask(q, jobs)
	status := http.StatusOK
	if tags.Fault != "" {
		status = http.StatusUnprocessableEntity
	}
	return q.show("bulkjobs", status, v)
}

// retag gives a job its tags, by an edit of the version that was read. A job that has them already
// is left alone.
func (q *request) retag(ctx context.Context, job *xxljob.Job, t *tagView) (did string, run int64, err error) {
	tags := slices.DeleteFunc(slices.Clone(job.Tags), func(tag string) bool { return slices.Contains(t.off, tag) })
	for _, tag := range t.add {
		if !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	if slices.Equal(tags, job.Tags) {
		return "same", 0, nil
	}
	whole, err := q.Store.Job(ctx, job.ID) // the list of jobs has no texts
	if err != nil {
		return "tag", 0, err
	}
	j := whole.Definition()
	j.Tags, j.Version = tags, job.Version
	_, err = q.Scheduler.UpdateJob(ctx, q.grantsOf().Keeping(), j)
	return "tag", 0, err
}
