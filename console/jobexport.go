package console

// Jobs as a file, to be taken to another store or kept: those that are ticked, those that a list
// has, or one.

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/jobfile"
	"github.com/xxljob/xxljob/store"
)

// mostExported is how large a file may be, in bytes, before its head: what is read again.
const mostExported = jobfile.MaxSize - 1024

// export is a file on its way. It is made whole before the answer begins, so that there is none
// of which a part is missing.
type export struct {
	q       *request
	jobs    []exportEntry
	size    int
	missing int              // jobs that were asked for, and are not there or not for the user to see
	refs    map[int64]string // jobs by id as others name them: "app/key", or "" for one that is not to be named
}

// exportEntry is a job in the file, and where it stands.
type exportEntry struct {
	app, key, name string
	id             int64
	text           []byte
}

func (q *request) newExport() *export { return &export{q: q, refs: map[int64]string{}} }

// exportJob answers with the request's job.
func (q *request) exportJob() error {
	e := q.newExport()
	if err := e.add([]xxljob.Job{q.job}); err != nil {
		return err
	}
	return e.send()
}

// oneByOne makes a file of many jobs, which is in memory until it is sent.
func (q *request) oneByOne(file func(*request) error) error {
	if err := q.hold(q.costly); err != nil {
		return err
	}
	return file(q)
}

// exportTicked answers with the jobs that are ticked, as far as the user sees them.
func (q *request) exportTicked() error { return q.oneByOne((*request).tickedFile) }

// exportList answers with all jobs that the filters of the list choose.
func (q *request) exportList() error { return q.oneByOne((*request).listFile) }

func (q *request) tickedFile() error {
	ids, err := q.ticked()
	if err != nil {
		return err
	}
	found, err := q.jobsByID(ids)
	if err != nil {
		return err
	}
	e, jobs := q.newExport(), []xxljob.Job(nil)
	for _, id := range ids {
		if job, there := found[id]; there && allowed(q.user, see, job.App) {
			jobs = append(jobs, job)
		}
	}
	if e.missing = len(ids) - len(jobs); len(jobs) == 0 {
		return errNotThere
	}
	if err := e.add(jobs); err != nil {
		return err
	}
	return e.send()
}

func (q *request) listFile() error {
	reader, f, err := q.asksForJobs()
	if err != nil {
		return err
	}
	search, sight, err := q.searchOf(&f)
	if err != nil {
		return err
	}
	e := q.newExport()
	f.rows, search.Order = jobsAtOnce, store.ByID // the one in which a job that changes meanwhile stays where it is
	for more := !sight.nothing; more; {
		found, err := q.findJobs(reader, &f, search)
		if err != nil {
			return asked(err)
		}
		if more = found.after != nil; more {
			search.After = *found.after
		}
		if f.order == store.ByNext {
			found.jobs = slices.DeleteFunc(slices.Clone(found.jobs), func(j xxljob.Job) bool { return j.Next.IsZero() })
		}
		if err := e.add(found.jobs); err != nil {
			return err
		}
	}
	return e.send()
}

// add adds jobs, all of which the user sees.
func (e *export) add(jobs []xxljob.Job) error {
	if err := e.learn(jobs); err != nil {
		return err
	}
	for i := range jobs {
		j := &jobs[i]
		line, err := e.q.exported(j, e.refs)
		if err != nil {
			return err
		}
		text, err := exportText(line)
		if err != nil {
			return err
		}
		if e.size += len(text); e.size > mostExported {
			return &web.Problem{Status: http.StatusRequestEntityTooLarge, Key: "export.large", Values: []any{"most", jobfile.MaxSize >> 20}}
		}
		e.jobs = append(e.jobs, exportEntry{j.App, j.Key, j.Name, j.ID, text})
	}
	return nil
}

// learn looks up how the jobs are called that others name by their ids.
func (e *export) learn(jobs []xxljob.Job) error {
	for i := range jobs {
		e.refs[jobs[i].ID] = refOf(&jobs[i])
	}
	var unknown []int64
	for i := range jobs {
		for _, id := range slices.Concat(jobs[i].Children, jobs[i].After) {
			if _, known := e.refs[id]; !known {
				e.refs[id] = ""
				unknown = append(unknown, id)
			}
		}
	}
	for ids := range slices.Chunk(unknown, jobsAtOnce) {
		found, err := e.q.briefly().jobsByID(ids)
		if err != nil {
			return err
		}
		for id, j := range found {
			if allowed(e.q.user, see, j.App) {
				e.refs[id] = refOf(&j)
			}
		}
	}
	return nil
}

// refOf is a job as definitions name it in any store, or "" for one that has no such name.
func refOf(j *xxljob.Job) string {
	ref := j.App + "/" + j.Key
	if app, key, ok := store.SplitRef(ref); !ok || app != j.App || key != j.Key {
		return ""
	}
	return ref
}

// send answers with the file: jobs in order of app and key, those without a key first, by name.
func (e *export) send() error {
	q, now := e.q, time.Now().UTC()
	slices.SortFunc(e.jobs, func(a, b exportEntry) int {
		return cmp.Or(strings.Compare(a.app, b.app), strings.Compare(a.key, b.key), strings.Compare(a.name, b.name), cmp.Compare(a.id, b.id))
	})
	head := fmt.Sprintf("{\n  \"format\": %q,\n  \"formatVersion\": %d,\n  \"exportedAt\": %q,\n", jobfile.Format, jobfile.Version, now.Format(jobfile.TimeFormat))
	if e.missing > 0 {
		head += fmt.Sprintf("  \"missing\": %d,\n", e.missing)
	}
	head += "  \"jobs\": ["
	tail, length := "\n  ]\n}\n", 0
	for i := range e.jobs {
		length += len(entryStart(i)) + len(e.jobs[i].text)
	}
	h := q.W.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Disposition", `attachment; filename="xxljob-jobs-`+now.Format("20060102T150405Z")+`.json"`)
	h.Set("Content-Length", strconv.Itoa(len(head)+length+len(tail)))
	packs := q.PacksFile()
	q.Wrote = true
	if q.R.Method == http.MethodHead {
		return nil
	}
	var out io.Writer = q.sender()
	if packs {
		packed, end := web.Gzipping(out)
		defer func() { _ = end() }()
		out = packed
	}
	_, err := io.WriteString(out, head)
	for i := range e.jobs {
		if err == nil {
			_, err = io.WriteString(out, entryStart(i))
		}
		if err == nil {
			_, err = out.Write(e.jobs[i].text)
		}
	}
	if err == nil {
		_, _ = io.WriteString(out, tail)
	}
	return nil // whoever has asked has gone, if anything
}

// The least rate at which somebody has to take a file, counted from a while after its beginning.
const (
	fileRate  = 128 << 10 // bytes a second
	fileGrace = 10 * time.Second
)

// sender writes a file to somebody who takes it no slower than that: until it is sent it has a place, and is in
// memory, in part at least. Where the server knows no deadline, it has one of its own.
type sender struct {
	w       io.Writer
	control *http.ResponseController
	began   time.Time
	sent    int64
}

func (q *request) sender() *sender {
	return &sender{w: q.W, control: http.NewResponseController(q.W), began: time.Now()}
}

// waits has the one who takes the file for so long nothing to take: a server of HTTP/2 goes by the deadline even
// where nothing is being written.
func (s *sender) waits(most time.Duration) {
	_ = s.control.SetWriteDeadline(time.Now().Add(most + fileGrace))
}

func (s *sender) Write(b []byte) (int, error) {
	_ = s.control.SetWriteDeadline(s.began.Add(fileGrace + time.Duration(s.sent+int64(len(b)))*time.Second/fileRate))
	n, err := s.w.Write(b)
	s.sent += int64(n)
	return n, err
}

// entryStart is what stands before a job of the list.
func entryStart(i int) string {
	if i == 0 {
		return "\n    "
	}
	return ",\n    "
}
