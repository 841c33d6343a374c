package console

// What errors say to people: in their language where the engine can say it so, and as it stands
// where the store, a host's function or an executor says it.

import (
	"errors"
	"strings"
)

// translatable is an error that says in a language what is wrong, as an xxljob.ScheduleError does.
type translatable interface {
	error
	In(language string) string
}

// why is what an error says, as a value of a text, which asks it in its own language.
func why(err error) any {
	var s translatable
	if errors.As(err, &s) {
		return s
	}
	return strings.TrimPrefix(err.Error(), "xxljob: ")
}
