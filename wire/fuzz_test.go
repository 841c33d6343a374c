package wire_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

// seed adds the golden bodies whose names begin so, and what is wrong with all.
func seed(f *testing.F, prefixes ...string) {
	f.Helper()
	names, err := filepath.Glob("testdata/*.json")
	if err != nil || len(names) == 0 {
		f.Fatal(names, err)
	}
	for _, name := range names {
		for _, prefix := range prefixes {
			if strings.HasPrefix(filepath.Base(name), prefix) {
				b, err := os.ReadFile(name)
				if err != nil {
					f.Fatal(err)
				}
				f.Add(b)
			}
		}
	}
	for _, in := range malformed {
		if len(in) < 1000 {
			f.Add([]byte(in))
		}
	}
}

// fuzz checks that what a decoder has read is read again from what it was encoded to.
func fuzz[T any, P interface {
	*T
	message
}](f *testing.F, prefixes ...string) {
	seed(f, prefixes...)
	f.Fuzz(func(t *testing.T, b []byte) {
		var first, second T
		if P(&first).Decode(b) != nil {
			return
		}
		out := P(&first).Encode(nil)
		if !json.Valid(out) {
			t.Fatalf("%q was read, and encoded to %s, which is no JSON", b, out)
		}
		if err := P(&second).Decode(out); err != nil {
			t.Fatalf("%s, from %q: %v", out, b, err)
		}
		if again := P(&second).Encode(nil); string(again) != string(out) {
			t.Fatalf("%s came back as %s", out, again)
		}
	})
}

func FuzzReturn(f *testing.F)            { fuzz[wire.Return](f, "answer-") }
func FuzzTriggerRequest(f *testing.F)    { fuzz[wire.TriggerRequest](f, "run-") }
func FuzzIdleBeatRequest(f *testing.F)   { fuzz[wire.IdleBeatRequest](f, "idleBeat") }
func FuzzKillRequest(f *testing.F)       { fuzz[wire.KillRequest](f, "kill") }
func FuzzLogRequest(f *testing.F)        { fuzz[wire.LogRequest](f, "log-") }
func FuzzLogAnswer(f *testing.F)         { fuzz[wire.LogReturn](f, "answer-") }
func FuzzRegistryRequest(f *testing.F)   { fuzz[wire.RegistryRequest](f, "registry") }
func FuzzJobRequest(f *testing.F)        { fuzz[wire.JobRequest](f, "kill") }
func FuzzTriggerJobRequest(f *testing.F) { fuzz[wire.TriggerJobRequest](f, "kill") }

func FuzzAddJobRequest(f *testing.F) {
	f.Add([]byte(`{"jobGroup":3,` + definitionJSON + `}`))
	fuzz[wire.AddJobRequest](f)
}

func FuzzUpdateJobRequest(f *testing.F) {
	f.Add([]byte(`{"id":3,` + definitionJSON + `}`))
	fuzz[wire.UpdateJobRequest](f)
}

func FuzzDecodeCallback(f *testing.F) {
	seed(f, "callback-")
	f.Fuzz(func(t *testing.T, b []byte) {
		first, err := wire.DecodeCallback(b)
		if err != nil {
			return
		}
		for _, form := range []wire.CallbackForm{wire.CallbackList, wire.CallbackObject} {
			second, err := wire.DecodeCallback(wire.EncodeCallback(nil, form, first))
			if err != nil || !reflect.DeepEqual(first, second) {
				t.Fatalf("form %d: %+v came back as %+v, %v", form, first, second, err)
			}
		}
	})
}

// FuzzParseAddress checks that an address keeps its meaning when it is spelled
// normally.
func FuzzParseAddress(f *testing.F) {
	for _, in := range []string{"http://a:80/", "HTTPS://[::1]:443/x/", "http://u@h", "http://h?q", "http://[fe80::1%25eth0]/", "local://x", "http://h:0"} {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, addr string) {
		if _, err := wire.ParseAddress(addr); err != nil {
			return
		}
		normal := wire.NormalAddress(addr)
		if again := wire.NormalAddress(normal); again != normal {
			t.Fatalf("%q: %q and then %q", addr, normal, again)
		}
	})
}
