package wire_test

// What is written by hand against what encoding/json makes of the same.

import (
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/xxljob/xxljob/wire"
)

// texts are those that need care: JSON escapes some of them, and not the others.
var texts = []string{
	"", "plain", "a=<b>&'", `quo"te`, `back\slash`, "line\nand\ttab\r", "\b\f", "\x00\x1f", "\x7f", "日本語", "\u2028", "a\u2029b", "\u0080", "\U0001F600", "\xff", "日\xff", "\xe2\x80", "\ufffd",
}

// each calls f with messages of which one field is set: numbers and flags to several values,
// texts to all of texts.
func each[T any](f func(T)) {
	var zero T
	f(zero)
	for _, field := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		for _, v := range valuesOf(field.Type) {
			m := zero
			reflect.ValueOf(&m).Elem().FieldByIndex(field.Index).Set(v.Convert(field.Type))
			f(m)
		}
	}
}

// valuesOf are values of a field's type.
func valuesOf(t reflect.Type) (all []reflect.Value) {
	switch t.Kind() {
	case reflect.String:
		for _, s := range texts {
			all = append(all, reflect.ValueOf(s))
		}
	case reflect.Bool:
		all = append(all, reflect.ValueOf(true))
	case reflect.Struct:
		all = append(all, reflect.ValueOf(wire.Progress{Percent: 3, Text: "a<\n"}))
	default:
		for _, n := range []int64{1, -1, 1<<31 - 1, 200} {
			all = append(all, reflect.ValueOf(n))
		}
	}
	return all
}

// TestWritten: what is written by hand has the bytes of encoding/json, field for field and text
// for text, behind what was there.
func TestWritten(t *testing.T) {
	const before = "before"
	each(func(r wire.TriggerRequest) {
		if got, want := string(r.Encode([]byte(before))), before+encode(t, r); got != want {
			t.Errorf("%+v:\n got %s\nwant %s", r, got, want)
		}
	})
	each(func(r wire.Return) {
		if got, want := string(r.Encode([]byte(before))), before+encode(t, r); got != want {
			t.Errorf("%+v:\n got %s\nwant %s", r, got, want)
		}
	})
}

// oldResult and the following are the results of the two forms, with the keys in their order.
type (
	oldResult struct {
		Code int    `json:"code"`
		Msg  string `json:"msg,omitempty"`
	}
	listedResult struct {
		wire.CallbackRequest
		Old oldResult `json:"executeResult"`
	}
	objectResult struct {
		LogID      int64         `json:"logId"`
		LogDateTim int64         `json:"logDateTime"`
		HandleCode int           `json:"handleCode"`
		HandleMsg  string        `json:"handleMsg,omitempty"`
		NoRetry    bool          `json:"noRetry,omitempty"`
		Killed     bool          `json:"killed,omitempty"`
		Shutdown   bool          `json:"shutdown,omitempty"`
		RetryIn    int64         `json:"retryIn,omitempty"`
		SnoozeIn   int64         `json:"snoozeIn,omitempty"`
		Exact      bool          `json:"exact,omitempty"`
		Progress   wire.Progress `json:"progress,omitzero"`
	}
)

// TestWrittenCallbacks is TestWritten for results, in both forms.
func TestWrittenCallbacks(t *testing.T) {
	listed, objects := []listedResult{}, []objectResult{}
	var results []wire.CallbackRequest
	each(func(r wire.CallbackRequest) {
		results = append(results, r)
		listed = append(listed, listedResult{r, oldResult{r.HandleCode, r.HandleMsg}})
		objects = append(objects, objectResult(r))
	})
	for n := range len(results) + 1 {
		if got, want := string(wire.EncodeCallback(nil, wire.CallbackList, results[:n])), encode(t, listed[:n]); got != want {
			t.Fatalf("list:\n got %s\nwant %s", got, want)
		}
		if got, want := string(wire.EncodeCallback(nil, wire.CallbackObject, results[:n])), encode(t, map[string]any{"callbackList": objects[:n]}); got != want {
			t.Fatalf("object:\n got %s\nwant %s", got, want)
		}
	}
}

// FuzzWritten: a text is written as encoding/json does, whatever it has.
func FuzzWritten(f *testing.F) {
	for _, s := range texts {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := wire.Return{Code: 200, Msg: s}
		got := r.Encode(nil)
		if want := encode(t, r); string(got) != want {
			t.Fatalf("%q:\n got %s\nwant %s", s, got, want)
		}
		if !json.Valid(got) || !utf8.Valid(got) {
			t.Fatalf("%q is written as %s", s, got)
		}
	})
}
