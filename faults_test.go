package xxljob_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
)

// TestFieldErrors: what is wrong with a value says so field by field, with a code for who has
// words of his own, however the error was wrapped since.
func TestFieldErrors(t *testing.T) {
	job := xxljob.Job{
		App: "app", Name: "n", Handler: "h", Author: strings.Repeat("x", 65), Route: "NOWHERE", Block: "serial_execution",
		Schedule: xxljob.Cron("never"), AlarmEmail: "a\x00b", MaxRuns: -1,
	}
	err := job.Validate()
	got := map[string]string{}
	for _, e := range xxljob.FieldErrors(fmt.Errorf("save: %w", errors.Join(errors.New("something else"), err))) {
		got[e.Field] = e.Code
		if e.Of != `job "n"` || !strings.Contains(err.Error(), e.Error()) {
			t.Errorf("%+v: its text is not part of %v", e, err)
		}
	}
	want := map[string]string{"Author": "too-long", "Route": "choice", "Block": "choice", "Schedule": "invalid", "AlarmEmail": "text", "MaxRuns": "invalid"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("faults %v, want %v", got, want)
	}
	var one *xxljob.FieldError
	if !errors.As(err, &one) || one.Err == nil || one.Value == "" {
		t.Errorf("errors.As finds %+v", one)
	}
	if !errors.Is(err, xxljob.ErrUnknownRoute) {
		t.Errorf("%v is not ErrUnknownRoute any more", err)
	}
	if list := xxljob.FieldErrors(errors.New("other")); list != nil || xxljob.FieldErrors(nil) != nil {
		t.Errorf("of another error, or none: %v", list)
	}
}

// TestFieldErrorsOfCalls: calls of a Scheduler pass them on.
func TestFieldErrorsOfCalls(t *testing.T) {
	s, err := xxljob.New(memory.New(), xxljob.Config{App: "app", Node: "n"})
	if err != nil {
		t.Fatal(err)
	}
	for field, job := range map[string]xxljob.Job{
		"Name":     {Handler: "h"},
		"Children": {Name: "n", Handler: "h", Children: []int64{4711}},
	} {
		_, err := s.AddJob(t.Context(), job)
		if list := xxljob.FieldErrors(err); len(list) != 1 || list[0].Field != field || list[0].Code != map[string]string{"Name": "required", "Children": "not-found"}[field] {
			t.Errorf("%s: %v, as fields %+v", field, err, list)
		}
	}
}

// TestControlCharactersInKeys: the error says which, and where.
func TestControlCharactersInKeys(t *testing.T) {
	for text, want := range map[string]string{
		"a\tb": "number 2 of it is U+0009", "é\u0085": "number 2 of it is U+0085", "\x7fx": "number 1 of it is U+007F", "é 漢": "",
	} {
		for field, err := range map[string]error{
			"Key": xxljob.Job{App: "a", Key: text, Name: "n", Handler: "h"}.Validate(),
			"App": xxljob.Job{App: text, Key: "k", Name: "n", Handler: "h"}.Validate(),
		} {
			list := xxljob.FieldErrors(err)
			if want == "" {
				if err != nil {
					t.Errorf("%s %q: %v", field, text, err)
				}
				continue
			}
			if len(list) != 1 || list[0].Field != field || list[0].Code != "text" || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %q: %v, want %q", field, text, err, want)
			}
		}
	}
}
