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

// The bounds of a file, in bytes: of one that is larger than the second, only so much is in memory at a time,
// and it is read once more, page by page, while it is taken.
const (
	mostExported = jobfile.MaxSize - 1024 // before its head: what is read again
	mostHeld     = 4 << 20
	exportAtOnce = 100 // jobs, of which each has a parameter of 64 KiB at most
)

// export is a file on its way. All of it is read before the answer begins, so that there is none of
// which a part is missing; one that is read once more while it is taken is broken off where it is not what
// was read at first.
type export struct {
	q       *request
	jobs    []exportEntry
	size    int
	held    bool             // the entries have their texts
	missing int              // jobs that were asked for, and are not there or not for the user to see
	refs    map[int64]string // jobs by id as others name them: "app/key", or "" for one that is not to be named
}

// exportEntry is a job in the file, and where it stands.
type exportEntry struct {
	app, key, name string
	id             int64
	size           int
	text           []byte
}

func (q *request) newExport() *export { return &export{q: q, held: true, refs: map[int64]string{}} }

// exportJob answers with the request's job.
func (q *request) exportJob() error {
	e := q.newExport()
	if err := e.add([]xxljob.Job{q.job}); err != nil {
		return err
	}
	if len(e.jobs) == 0 { // it was removed meanwhile
		return errNotThere
	}
	return e.send()
}

// oneByOne makes a file of many jobs, which is in memory in part until it is sent.
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
	found, err := q.briefly().jobsByID(ids)
	if err != nil {
		return err
	}
	e, jobs := q.newExport(), []xxljob.Job(nil)
	for _, id := range ids {
		if job, there := found[id]; there && allowed(q.user, see, job.App) {
			jobs = append(jobs, job)
		}
	}
	if err := e.add(jobs); err != nil {
		return err
	}
	if e.missing = len(ids) - len(e.jobs); len(e.jobs) == 0 {
		return errNotThere
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
		found, err := q.briefly().findJobs(reader, &f, search)
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

// add adds jobs, all of which the user sees, and which may have been read briefly.
func (e *export) add(jobs []xxljob.Job) error {
	if err := e.learn(jobs); err != nil {
		return err
	}
	for some := range slices.Chunk(jobs, exportAtOnce) {
		entries := make([]exportEntry, len(some))
		for i := range some {
			j := &some[i]
			entries[i] = exportEntry{app: j.App, key: j.Key, name: j.Name, id: j.ID}
		}
		texts, err := e.texts(entries, false)
		if err != nil {
			return err
		}
		for i := range entries {
			text := texts[entries[i].id]
			if text == nil { // it was removed meanwhile
				continue
			}
			if e.size += len(text); e.size > mostExported {
				return &web.Problem{Status: http.StatusRequestEntityTooLarge, Key: "export.large", Values: []any{"most", jobfile.MaxSize >> 20}}
			}
			entries[i].size = len(text)
			e.jobs = append(e.jobs, entries[i])
			if e.held = e.held && e.size <= mostHeld; e.held {
				e.jobs[len(e.jobs)-1].text = text
			}
		}
	}
	return nil
}

// texts reads the jobs of the entries, and returns what the file has of each by its id. Where they are read
// again, it is an error that one is called otherwise than others in the file name it.
func (e *export) texts(entries []exportEntry, again bool) (map[int64][]byte, error) {
	ids := make([]int64, len(entries))
	for i := range entries {
		ids[i] = entries[i].id
	}
	// The whole of their parameters, and no scripts, which the file does not have.
	found, err := e.q.under(store.WithLinks(store.WithShortTexts(e.q.ctx, jobfile.MaxSize))).jobsByID(ids)
	if err != nil {
		return nil, err
	}
	texts := make(map[int64][]byte, len(found))
	for id, j := range found {
		if !allowed(e.q.user, see, j.App) {
			continue
		}
		if again && refOf(&j) != e.refs[id] {
			return nil, fmt.Errorf("job %d is called otherwise by now", id)
		}
		line, err := e.q.exported(&j, e.refs)
		if err != nil {
			return nil, err
		}
		if texts[id], err = exportText(line); err != nil {
			return nil, err
		}
	}
	return texts, nil
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
	tail, length := "\n  ]\n}\n", e.size
	for i := range e.jobs {
		length += len(entryStart(i))
	}
	h := q.W.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Disposition", `attachment; filename="xxljob-jobs-`+now.Format("20060102T150405Z")+`.json"`)
	if e.held { // else a job may be another by the time that it is sent
		h.Set("Content-Length", strconv.Itoa(len(head)+length+len(tail)))
	}
	packs := q.PacksFile()
	q.Wrote = true
	if q.R.Method == http.MethodHead {
		return nil
	}
	sends := q.sender()
	var out io.Writer = sends
	end := func() error { return nil }
	if packs {
		out, end = web.Gzipping(sends)
	}
	_, err := io.WriteString(out, head)
	at := 0
	for some := range slices.Chunk(e.jobs, exportAtOnce) {
		if err == nil && !e.held {
			err = e.readAgain(sends, some)
		}
		for i := range some {
			if err == nil {
				_, err = io.WriteString(out, entryStart(at))
			}
			if err == nil {
				_, err = out.Write(some[i].text)
			}
			at++
		}
		if !e.held {
			clear(some)
		}
	}
	if err == nil {
		_, err = io.WriteString(out, tail)
	}
	if end(); err != nil && !e.held {
		panic(http.ErrAbortHandler) // or what has come so far would look like a file
	}
	return nil // whoever has asked has gone, if anything
}

// readAgain reads the texts of some entries once more. It takes nothing of the time that somebody has to take
// the file.
func (e *export) readAgain(sends *sender, some []exportEntry) error {
	began := time.Now()
	sends.waits(partTime)
	texts, err := e.texts(some, true)
	sends.began = sends.began.Add(time.Since(began))
	for i := range some {
		some[i].text = texts[some[i].id]
		e.size += len(some[i].text) - some[i].size
		switch {
		case err != nil:
		case some[i].text == nil:
			err = fmt.Errorf("job %d is not there any more", some[i].id)
		case e.size > mostExported:
			err = fmt.Errorf("the jobs come to more than %d MiB by now", jobfile.MaxSize>>20)
		}
	}
	if err != nil && e.q.R.Context().Err() == nil { // else who takes it has gone
		e.q.Logger.Warn("console: a file of jobs was broken off", "request", e.q.ID, "error", err)
	}
	return err
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
