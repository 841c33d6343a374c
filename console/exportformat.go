package console

// What a file of jobs has, in the format of package jobfile, which reads it again.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/jobfile"
)

// exported is a job as the file has it, without ids, and without what is of one store only. refs are
// how jobs are called that it names by their ids. What the job has and the file has not, or not all
// of, is named: "param" where Config.Redact hides something of it, "glueSource", and "childKeys" and
// "afterKeys" where a job has no key by which another store would know it, or the user does not see it.
func (q *request) exported(of *xxljob.Job, refs map[int64]string) ([]byte, error) {
	j, leftOut := *of, []string(nil) // whose lists are replaced, and not changed
	if j.Schedule.IsManual() {
		j.Schedule.Type = xxljob.ScheduleNone
	}
	if q.hidesParam(of) {
		j.Param = ""
		leftOut = append(leftOut, "param")
	}
	j.GlueSource = ""
	if of.IsScript() {
		leftOut = append(leftOut, "glueSource")
	} else {
		j.GlueType, j.GlueRemark = "", ""
	}
	var whole bool
	if j.ChildKeys, whole = withRefs(j.ChildKeys, j.Children, refs); !whole {
		leftOut = append(leftOut, "childKeys")
	}
	if j.AfterKeys, whole = withRefs(j.AfterKeys, j.After, refs); !whole {
		leftOut = append(leftOut, "afterKeys")
	}
	j.Children, j.After = nil, nil
	return jobfile.Marshal(j, leftOut...)
}

// withRefs are the keys of jobs together with those of jobs that are named by their ids, each
// once, in order. Whole says that none of these is left out.
func withRefs(keys []string, ids []int64, refs map[int64]string) (list []string, whole bool) {
	list, whole = slices.Clone(keys), true
	for _, id := range ids {
		if ref := refs[id]; ref != "" {
			list = append(list, ref)
		} else {
			whole = false
		}
	}
	slices.Sort(list)
	return slices.Compact(list), whole
}

// exportText is a job as text, in which each character is seen: those that are not, or that change
// how others are, are escaped, as JSON allows for any.
func exportText(line []byte) ([]byte, error) {
	var text bytes.Buffer
	err := json.Indent(&text, line, "    ", "  ")
	if err != nil || !bytes.ContainsFunc(text.Bytes(), web.Hides) {
		return text.Bytes(), err
	}
	var b strings.Builder
	for _, r := range text.String() {
		switch {
		case !web.Hides(r):
			b.WriteRune(r)
		case r < 1<<16:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return []byte(b.String()), nil
}
