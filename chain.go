package xxljob

// Jobs that others lead to: children of a success, and joins behind several.

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/xxljob/xxljob/store"
)

// The bounds of chains.
const (
	mostLinks  = 100 // of one job
	mostWindow = 31 * 24 * time.Hour
	oneDay     = 24 * time.Hour
)

// chainDefaults fills in what is empty, as far as it has to be the same at every node.
func (j *Job) chainDefaults(zone *time.Location) {
	if j.ChildParam == ChildParamOwn {
		j.ChildParam = "" // as it is stored
	}
	if j.isJoin() && j.AfterZone == "" && zone != nil && zone != time.UTC {
		j.AfterZone = zone.String()
	}
}

// isJoin reports whether the job runs behind others.
func (j *Job) isJoin() bool { return len(j.After)+len(j.AfterKeys) > 0 }

// hasLinks reports whether other jobs follow from its definition, or it from theirs.
func (j *Job) hasLinks() bool { return j.isJoin() || len(j.Children)+len(j.ChildKeys) > 0 }

// checkChain adds what is wrong with children, joins and LateAfter.
func (j *Job) checkChain(f *faults) {
	f.links("Children", j.Children, "ChildKeys", j.ChildKeys, j.App, j.Key, j.ID)
	f.links("After", j.After, "AfterKeys", j.AfterKeys, j.App, j.Key, j.ID)
	f.oneOf("ChildParam", string(j.ChildParam), "", string(ChildParamOwn), string(ChildParamParent), string(ChildParamResult))
	f.span("LateAfter", j.LateAfter)
	if !j.isJoin() {
		for _, field := range []struct {
			name string
			set  bool
		}{{"AfterWindow", j.AfterWindow != 0}, {"AfterZone", j.AfterZone != ""}, {"AfterTimeout", j.AfterTimeout != 0}} {
			if field.set {
				f.add(field.name, "", errors.New("is for a job with After or AfterKeys"))
			}
		}
		return
	}
	f.span("AfterTimeout", j.AfterTimeout)
	if w := j.AfterWindow; w < 0 || w > mostWindow || w%time.Millisecond != 0 || w > 0 && w < time.Second || w > 0 && w < oneDay && oneDay%w != 0 || w > oneDay && w%oneDay != 0 {
		f.add("AfterWindow", w, errors.New("want a divisor of 24h from 1s on in whole milliseconds, or whole days up to 31"))
	}
	if _, err := loadZone(j.AfterZone); err != nil {
		f.add("AfterZone", j.AfterZone, err)
	}
}

// span checks a duration of a second to a month, or none.
func (f *faults) span(field string, d time.Duration) {
	if d != 0 && (d < time.Second || d > mostWindow || d%time.Millisecond != 0) {
		f.add(field, d, errors.New("want 1s to 744h, in whole milliseconds, or 0"))
	}
}

// links checks the jobs that a job names, by id and by key.
func (f *faults) links(idField string, ids []int64, keyField string, keys []string, app, key string, self int64) {
	if n := len(ids) + len(keys); n > mostLinks {
		f.add(idField, n, fmt.Errorf("%d jobs with those of %s, at most %d", n, keyField, mostLinks))
	}
	for _, id := range ids {
		switch {
		case id <= 0 || id >= 1<<31:
			f.add(idField, id, errors.New("want job ids from 1 to 2^31-1"))
		case id == self && self != 0:
			f.add(idField, id, fmt.Errorf("%w: it is the job itself", ErrCycle))
		}
	}
	for _, ref := range keys {
		refApp, refKey, ok := store.SplitRef(ref)
		switch {
		case !ok || len(refApp) > 64 || len(refKey) > 255 || strings.TrimSpace(refKey) == "":
			f.add(keyField, shorten(ref, 80), errors.New(`want "app/key", of at most 64 and 255 bytes`))
		case refApp == app && refKey == key:
			f.add(keyField, ref, fmt.Errorf("%w: it is the job itself", ErrCycle))
		default:
			f.text(keyField, ref, 1, 320)
		}
	}
}

// BusinessTime is the time that the work of a run is for: of a child that of the run whose
// success has planned it, of a join when its window begins, and of any other run the first
// instant that its trigger stands for. It is what Job.After goes by.
func (r Run) BusinessTime() time.Time {
	switch {
	case !r.Business.IsZero():
		return r.Business
	case !r.First.IsZero():
		return r.First
	}
	return r.Scheduled
}
