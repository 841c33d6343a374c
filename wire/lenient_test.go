package wire_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// posted posts a body to a handler with tokens, with headers in pairs, and returns the answer.
func posted(t *testing.T, h http.Handler, path, body string, headers ...string) (r wire.Return) {
	t.Helper()
	req := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	req.Header.Set(wire.HeaderToken, token)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	if err := r.Decode(w.Body.Bytes()); err != nil {
		t.Fatal(err)
	}
	return r
}

// lenientCase is one of testdata/lenient.
type lenientCase struct{ Name, Body, Gson, Ours, Why string }

// TestLenientCallbacks compares with Java's reader what an admin makes of results that are no
// JSON.
func TestLenientCallbacks(t *testing.T) {
	b, err := os.ReadFile("testdata/lenient/callback.json")
	var cases []lenientCase
	if err == nil {
		err = json.Unmarshal(b, &cases)
	}
	if err != nil || len(cases) < 50 {
		t.Fatal(len(cases), err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			want := c.Gson
			if c.Ours != "" {
				want = c.Ours
			}
			p := newPeer()
			r := posted(t, adminHandler(t, p, guarded(t)), "/api/callback", c.Body)
			if want == "refused" {
				if r.OK() || p.count() != 0 || strings.Contains(r.Msg, "internal") || len(r.Msg) > 200 {
					t.Errorf("answered %+v, asked %v: want a refusal in words", r, p.asked)
				}
				return
			}
			var some []*wire.CallbackRequest
			if err := json.Unmarshal([]byte(want), &some); err != nil {
				t.Fatal(err)
			}
			var all []wire.CallbackRequest
			for _, one := range some {
				if one != nil {
					all = append(all, *one)
				}
			}
			if !r.OK() || !reflect.DeepEqual(p.last(), all) {
				t.Errorf("answered %+v, asked %+v: want %+v", r, p.last(), all)
			}
		})
	}
}

// TestOneBadResult says that it does not take the others along: they are handed over, and the
// answer and the log say what is wrong with it.
func TestOneBadResult(t *testing.T) {
	good := `{"logId":1,"logDateTim":2,"handleCode":200,"handleMsg":"fine"}`
	for _, body := range []string{
		`[` + good + `,{"logId":"","logDateTim":0,"handleCode":200}]`,
		`[{"logId":1,"logId":2},` + good + `]`,
		`[null,` + good + `,7,[]]`,
		`{"callbackList":[{"logId":1,"handleMsg":{}},` + good + `]}`,
		`[{"logId":3,"handleCode":200,"handleMsg":"C:\dir"},` + good + `]`,
		`[` + good + `,{"logId":3,"handleMsg":"\u12","\x":[1,{"a":"\d"}]}]`,
		`{"x":[],"callbackList":[` + good + `,{"logId":3,"handleMsg":'\%'},{"logId":4,"handleMsg":"\q"}]}`,
	} {
		p, lines, unread := newPeer(), &bytes.Buffer{}, &atomic.Uint64{}
		cfg := guarded(t)
		cfg.Logger, cfg.Unread = slog.New(slog.NewTextHandler(lines, nil)), unread
		r := posted(t, adminHandler(t, p, cfg), "/api/callback", body)
		want := []wire.CallbackRequest{{LogID: 1, LogDateTim: 2, HandleCode: 200, HandleMsg: "fine"}}
		if !r.OK() || !strings.Contains(r.Note(), "not understood") || !reflect.DeepEqual(p.last(), want) {
			t.Errorf("%s: answered %+v, asked %+v", body, r, p.last())
		}
		if unread.Load() != 1 || !strings.Contains(lines.String(), "from=192.0.2.1:1234") || !strings.Contains(lines.String(), "level=WARN") {
			t.Errorf("%s: counted %d, logged %s", body, unread.Load(), lines)
		}
	}
}

// TestResultsBeforeOneWithoutEnd: where it cannot be told where a result ends, those before it are taken, and the
// answer says that those behind have to be sent again.
func TestResultsBeforeOneWithoutEnd(t *testing.T) {
	good := func(id int) string {
		return fmt.Sprintf(`{"logId":%d,"logDateTim":2,"handleCode":200,"handleMsg":"it's [fine]"}`, id)
	}
	for _, body := range []string{
		`[` + good(1) + `,` + good(2) + `,{"logId":3,"handleMsg":"no end},` + good(4) + `]`,
		`[` + good(1) + `,` + good(2) + `,{"logId":3,"handleMsg":"no end`,
		`[` + good(1) + `,` + good(2) + `,{"logId":3,"handleMsg":"a "quoted" word"},` + good(4) + `]`,
		`[` + good(1) + `,` + good(2) + `,{"logId":3,"handleMsg":"ends in a backslash\"},` + good(4) + `]`,
		`{"x":{"y":[]},"callbackList":[` + good(1) + `,` + good(2) + `,{"logId":3,"executeResult":{"msg":"no end}},` + good(4) + `]}`,
	} {
		p, lines, unread := newPeer(), &bytes.Buffer{}, &atomic.Uint64{}
		cfg := guarded(t)
		cfg.Logger, cfg.Unread = slog.New(slog.NewTextHandler(lines, nil)), unread
		r := posted(t, adminHandler(t, p, cfg), "/api/callback", body)
		var want []wire.CallbackRequest
		for id := int64(1); id <= 2; id++ {
			want = append(want, wire.CallbackRequest{LogID: id, LogDateTim: 2, HandleCode: 200, HandleMsg: "it's [fine]"})
		}
		if r.OK() || !strings.Contains(r.Msg, "behind the first 2 are not understood") || !strings.Contains(r.Msg, "malformed JSON at byte ") || !reflect.DeepEqual(p.last(), want) {
			t.Errorf("%s: answered %+v, asked %+v", body, r, p.last())
		}
		if unread.Load() != 1 || !strings.Contains(lines.String(), "level=WARN") {
			t.Errorf("%s: counted %d, logged %s", body, unread.Load(), lines)
		}
		if results, err := wire.DecodeCallback([]byte(body)); err == nil {
			t.Errorf("%s: decoded %+v", body, results)
		}
	}
	for _, body := range []string{
		`[{"logId":3,"handleMsg":"no end},` + good(4) + `]`, `{"x":[1],"callbackList":[{"logId":3,"handleMsg":"no end}]}`,
		`[` + good(1) + `,` + good(2) + `,`, `[` + good(1) + `,` + good(2), `[` + good(1) + `,` + good(2) + `}`, // what is wrong is in no result
		`{"callbackList":[` + good(1) + `,` + good(2) + `],"x":{"y":"no end}`,
	} {
		p := newPeer()
		if r := posted(t, adminHandler(t, p, guarded(t)), "/api/callback", body); r.OK() || p.count() > 0 {
			t.Errorf("%s: answered %+v, asked %v", body, r, p.asked)
		}
	}
}

// TestRawTexts: texts of whatever length and raw characters are read, and one with a slip outside of a
// list is refused.
func TestRawTexts(t *testing.T) {
	for name, text := range map[string]string{
		"short lines":         strings.Repeat("1\n", 20_000),
		"lines of nothing":    strings.Repeat("\r\n\t", 100_000),
		"control characters":  strings.Repeat("\x1b", 20_000),
		"colours":             strings.Repeat("\x1b[31mred\x1b[0m ok\n", 50_000),
		"in a line of others": "a\n" + strings.Repeat("b", 100_000),
	} {
		p := newPeer()
		r := posted(t, adminHandler(t, p, guarded(t)), "/api/callback", `[{"logId":1,"handleCode":200,"handleMsg":"`+text+`"},{"logId":2,"handleCode":200}]`)
		want := []wire.CallbackRequest{{LogID: 1, HandleCode: 200, HandleMsg: text}, {LogID: 2, HandleCode: 200}}
		if !r.OK() || !reflect.DeepEqual(p.last(), want) {
			t.Errorf("%s: answered %+v, asked %.100v", name, r, p.asked)
		}
	}
	for _, body := range []string{`{"logId":1,"x":"\d"}`, `{"\d":[],"callbackList":[]}`, `[{"logId":1,"handleMsg":"\d"}]`, `[{"logId":1,"handleMsg":"\`} {
		p := newPeer()
		if r := posted(t, adminHandler(t, p, guarded(t)), "/api/callback", body); r.OK() || p.count() > 0 {
			t.Errorf("%s: answered %+v, asked %v", body, r, p.asked)
		}
	}
}

// TestUnreadIsLogged says that what is refused is counted each time, and logged once a minute
// for a host and an endpoint.
func TestUnreadIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines, unread := &bytes.Buffer{}, &atomic.Uint64{}
		cfg := guarded(t)
		cfg.Logger, cfg.Unread = slog.New(slog.NewTextHandler(lines, nil)), unread
		admin, executor := adminHandler(t, newPeer(), cfg), executorHandler(t, newPeer(), cfg)
		for range 3 {
			posted(t, admin, "/api/callback", "nonsense")
			posted(t, executor, "/run", "nonsense")
			posted(t, admin, "/api/registry", "{}", "Content-Encoding", "br")
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		posted(t, admin, "/api/callback", "nonsense")
		if n := strings.Count(lines.String(), "\n"); unread.Load() != 10 || n != 4 || strings.Count(lines.String(), "from=192.0.2.1:1234") != n {
			t.Errorf("counted %d, in %d lines: %s", unread.Load(), n, lines)
		}
	})
}

func gzipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, s)
	w.Close()
	return b.String()
}

// TestPackedBodies says which are read: gzip, of no more than the limit, packed and unpacked.
func TestPackedBodies(t *testing.T) {
	list := string(wire.EncodeCallback(nil, wire.CallbackList, []wire.CallbackRequest{{LogID: 1, HandleCode: 200}}))
	wide := func(n int) string { return list + strings.Repeat(" ", n-len(list)) }
	for name, c := range map[string]struct{ body, encoding, want string }{
		"gzip":                   {gzipped(list), "gzip", ""},
		"by its other name":      {gzipped(list), "X-GZIP", ""},
		"as it is":               {list, "identity", ""},
		"in two parts":           {gzipped(list[:9]) + gzipped(list[9:]), "gzip", ""},
		"as much as there may":   {gzipped(wide(100_000)), "gzip", ""},
		"more than there may":    {gzipped(wide(100_001)), "gzip", "longer than 100000 bytes"},
		"a bomb":                 {gzipped(wide(50 << 20)), "gzip", "longer than 100000 bytes"},
		"more of it, and packed": {gzipped(list) + strings.Repeat(gzipped(""), 10_000), "gzip", "longer than 100000 bytes"},
		"no gzip":                {list, "gzip", "not gzip"},
		"cut off":                {gzipped(wide(9000))[:30], "gzip", "could not be read"},
		"damaged":                {strings.Replace(gzipped(wide(9000)), gzipped(wide(9000))[12:14], "\xff\xff", 1), "gzip", "not gzip"},
		"brotli":                 {list, "br", `"br"`},
		"twice":                  {gzipped(gzipped(list)), "gzip, gzip", `"gzip, gzip"`},
		"nothing":                {"", "gzip", "empty"},
	} {
		p := newPeer()
		cfg := guarded(t)
		cfg.MaxBody = 100_000
		r := posted(t, adminHandler(t, p, cfg), "/api/callback", c.body, "Content-Encoding", c.encoding)
		if r.OK() != (c.want == "") || !strings.Contains(r.Msg, c.want) || (p.count() == 1) != r.OK() {
			t.Errorf("%s: answered %+v, asked %v", name, r, p.asked)
		}
		if p := newPeer(); true {
			r := posted(t, adminHandler(t, p, cfg), "/api/callback", c.body, "Content-Encoding", c.encoding, wire.HeaderToken, "another")
			if r.Msg != wire.MsgTokenWrong && c.body != "" {
				t.Errorf("%s, with a wrong token: %+v", name, r)
			}
		}
	}
}

// TestPackedAnswers says the same of answers, which something between packs that was not asked
// to.
func TestPackedAnswers(t *testing.T) {
	for name, c := range map[string]struct{ body, encoding, want string }{
		"gzip":   {gzipped(`{"code":200}`), "gzip", ""},
		"bomb":   {gzipped(`{"code":200}` + strings.Repeat(" ", 9000)), "gzip", "longer than 5000 bytes"},
		"brotli": {`{"code":200}`, "br", `"br"`},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", c.encoding)
			io.WriteString(w, c.body)
		}))
		client := executorClient(t, srv.URL, wire.ClientConfig{MaxAnswer: 5000})
		r, err := client.Run(t.Context(), demoRun)
		if r.OK() != (c.want == "") || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		srv.Close()
	}
}
