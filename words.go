package xxljob

// The words of errors: what an error is about, said once, and what would have been right.

import (
	"fmt"
	"slices"
	"strings"
)

// told is an error in other words. It is still that error to errors.Is and errors.As.
type told struct {
	text string
	err  error
}

func (t told) Error() string { return t.text }
func (t told) Unwrap() error { return t.err }

// about says in front of an error what it is about. The module's name stays in front of
// that, and is not said again behind it.
func about(what string, err error) error {
	if err == nil {
		return nil
	}
	text := strings.TrimPrefix(err.Error(), "xxljob: ")
	return told{"xxljob: " + what + ": " + strings.ReplaceAll(text, ": xxljob: ", ": "), err}
}

// absent is about an error of a call for something, which may be that it is not there.
func absent(verb, what string, err error) error {
	if isNotFound(err) {
		return told{"xxljob: " + verb + ": " + what + " does not exist", err}
	}
	return about(verb+" "+what, err)
}

// called is what an error calls a job.
func called(j Job) string {
	name := j.Name
	if strings.TrimSpace(name) == "" {
		name = j.Key
	}
	if strings.TrimSpace(name) == "" {
		return "job"
	}
	return fmt.Sprintf("job %q", shorten(name, 40))
}

// named is an error that names the job, once.
func named(j Job, err error) error {
	if err == nil || strings.HasPrefix(err.Error(), "xxljob: "+called(j)+": ") {
		return err
	}
	return about(called(j), err)
}

// oneOf says which names there are, and which of them was meant where only case differs.
func oneOf(given string, names []string) string {
	text := "want one of " + strings.Join(names, ", ")
	meant := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, given) })
	if meant < 0 {
		return text
	}
	return text + "; did you mean " + names[meant] + "?"
}
