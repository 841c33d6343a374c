package console

// What errors say to people: in their language where the engine can say it so, and as it stands
// where the store, a host's function or an executor says it.

import (
	"errors"
	"slices"
	"strings"

	"github.com/xxljob/xxljob/finding"
	"github.com/xxljob/xxljob/wire"
)

// translatable is an error that says in a language what is wrong, as an xxljob.ScheduleError does.
type translatable interface {
	error
	In(language string) string
}

// lackIn is what an executor or the scheduler lacks by what it says, in the user's language: a handler, or a
// kind of scripts. It is empty where the text says something else.
func (q *request) lackIn(text string) string {
	for form, key := range map[string]string{wire.MsgHandlerNotFound: "finding.detail.no-handler", wire.MsgGlueType: "finding.detail.no-glue"} {
		before, after, _ := strings.Cut(form, "%s")
		if name, is := strings.CutPrefix(text, before); is && strings.HasSuffix(name, after) {
			return q.text(key, "name", strings.TrimSuffix(name, after))
		}
	}
	return ""
}

// whyStopped is why a job has stopped by itself: what is wrong with its schedule in the user's language, where
// that is what was said as it stopped.
func (q *request) whyStopped(f *finding.Finding, w *finding.World) string {
	for i := range w.Jobs {
		if j := &w.Jobs[i]; slices.Contains(f.Jobs, j.ID) {
			var s translatable
			if err := j.Schedule.Validate(true); errors.As(err, &s) && strings.Contains(f.Error, s.Error()) {
				return s.In(q.look.Language.Tag)
			}
		}
	}
	return f.Error
}

// why is what an error says, as a value of a text, which asks it in its own language.
func why(err error) any {
	var s translatable
	if errors.As(err, &s) {
		return s
	}
	return strings.TrimPrefix(err.Error(), "xxljob: ")
}
