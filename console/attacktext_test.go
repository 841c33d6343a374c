package console_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// textAttacks are texts that would do something if they were not texts.
func textAttacks() []attack {
	raw := map[string]func(*testing.T) *site{"a template that does not escape": weak(console.WithoutEscaping)}
	return []attack{
		{"markup in texts that people write", func(x *site) found { return markup(x, x.people()) }, raw, 0},
		{"what is not seen in texts that people write", func(x *site) found { return unseenIn(x, x.people()) },
			map[string]func(*testing.T) *site{"a template that shows what is not seen": weak(console.WithoutSigns)}, 0},
		{"markup in texts of handlers", func(x *site) found { return markup(x, x.handlers()) }, raw, 0},
		{"what is not seen in texts of handlers", func(x *site) found { return unseenIn(x, x.handlers()) },
			map[string]func(*testing.T) *site{"a log as terminals have it": knowing(rawLog)}, 0},
		{"markup in texts of executors elsewhere", func(x *site) found { return markup(x, x.elsewhere()) }, raw, overNetwork},
		{"markup in what the host says", hostTexts, raw, 0},
	}
}

// unseen are texts with what is not seen, or acts on what shows it: what changes the direction
// of what follows, what has no width, colors and links of terminals, and texts without an end.
var unseen = []string{
	"invoice\u202egpj.exe", "a\u2066b\u2069", "pay\u200bpal", "\u2028line", "soft\u00adhyphen", "\ufeffmark", "tag\U000e0041", "\x1b[31mred\x1b]8;;javascript:alert(1)\x07", "bell\x07\x08", "\u3164", "del\x7f\u0085x",
	strings.Repeat("<b>", 85), strings.Repeat("\u202e", 80),
}

// evils are all of them.
func evils() []string { return append(append([]string{}, hostile...), unseen...) }

// people writes hostile texts by all that people and programs write with, and returns the pages
// that show them.
func (x *site) people() (pages []string) {
	root := x.admin()
	form := root.newForm()
	for i, evil := range evils() {
		n := itoa(int64(i))
		ctx := xxljob.WithClient(xxljob.WithActor(x.Context(), evil), evil, evil)
		name := store.Shown(n+evil, 200) // of at most 255 bytes
		if short := n + evil; len(short) < 250 && !strings.ContainsRune(short, 0) {
			name = short
		}
		j := xxljob.Job{App: "orders", Name: name, Key: keyLike(name), Handler: name, Author: cutBytes(evil, 60), AlarmEmail: cutBytes(evil, 200), Param: strings.Repeat(evil, 1+i%3), Schedule: xxljob.Cron("0 0 3 * * ?")}
		switch i % 3 {
		case 0:
			must1(x.s.AddJob(ctx, j))
		case 1:
			must1(x.s.EnsureJob(ctx, j))
		case 2:
			root.post("jobs/new", with(form, "name", name, "key", keyLike(name), "handler", name, "author", j.Author, "alarm", j.AlarmEmail, "param", j.Param))
		}
		job, err := x.store.JobByKey(x.Context(), "orders", strings.TrimSpace(keyLike(name)))
		must(x.T, err)
		job.Author = "else"
		job = must1(x.s.UpdateJob(ctx, job))
		run := must1(x.s.TriggerOne(ctx, job.ID, xxljob.Trigger{Param: &evil, At: time.Now().Add(time.Hour), Key: "k" + n}))
		value := string(must1(json.Marshal(map[string]string{cutBytes(evil, 100): evil + "\n" + evil})))
		must1(x.store.RecordChange(ctx, xxljob.Change{Verb: "odd", Object: store.ObjectJob, JobID: job.ID, Before: strings.Replace(value, ":", ": ", 1), After: value}))
		page, q := "jobs/"+itoa(job.ID), url.QueryEscape(evil)
		pages = append(pages, page, page+"/edit", page+"/once", page+"/remove", "jobs/new?copy="+itoa(job.ID)+"&app="+q, "runs/"+itoa(run), "runs/"+itoa(run)+"/kill",
			"jobs?text="+q+"&handler="+q+"&app="+q, "runs?handler="+q+"&address="+q, "changes?actor="+q+"&id="+q)
	}
	app := cutBytes("\u202e<i>app", 64)
	must(x.T, x.s.SaveGroup(x.Context(), xxljob.Group{App: app, Title: "<b>\u202etitle"}))
	agent := x.browser()
	agent.header.Set("User-Agent", strings.Join(evils(), " "))
	agent.post("login", url.Values{"name": {"root"}, "password": {password}})
	return append(pages, "jobs?rows=500", "jobs", "runs", "runs?state=waiting", "changes")
}

// keyLike is a text as a key can have it: without control characters.
func keyLike(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
}

// cutBytes is the beginning of a text, of whole characters.
func cutBytes(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

// handlers has a handler write hostile texts wherever handlers write, and returns the pages that
// show them.
func (x *site) handlers() []string {
	x.admin()
	run := x.ran(true, func(_ context.Context, task *xxljob.Task) error {
		for _, evil := range evils() {
			task.Log().Info(evil, evil, evil)
			task.Log().Info("\x1b[31" + evil + "m\x1b]8;;" + evil + "\x07\x1b[1;" + evil + "\u202e\x00")
			task.Progress(1, evil)
		}
		return errors.New(strings.Join(evils(), "\n"))
	})
	page := "runs/" + itoa(run.ID)
	return []string{page, page + "/log", page + "/log?from=1", page + "/log?find=a", page + "/log?line=3", "runs", "jobs/" + itoa(run.JobID)}
}

// elsewhere has an executor of another process register, answer, log and report hostile texts,
// and returns the pages that show them.
func (x *site) elsewhere() []string {
	root := x.admin()
	all := strings.Join(evils(), "\n")
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]any{"code": 200}
		switch {
		case strings.HasSuffix(r.URL.Path, "/log"):
			answer["content"] = map[string]any{"fromLineNum": 1, "toLineNum": strings.Count(all, "\n") + 1, "logContent": all + "\n", "isEnd": false}
		case strings.HasSuffix(r.URL.Path, "/run"):
			var req wire.TriggerRequest
			if json.NewDecoder(r.Body).Decode(&req) == nil && req.ExecutorHandler == "refused" {
				answer = map[string]any{"code": 500, "msg": all}
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	x.Cleanup(far.Close)
	run := map[string]int64{}
	for _, app := range []string{"far", "refused"} {
		token := "token of " + app
		page := x.farNode(app, token)
		for _, evil := range evils() {
			says(page, token, "registry", wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: app, RegistryValue: evil}.Encode(nil))
		}
		if ret := says(page, token, "registry", wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: app, RegistryValue: far.URL + "/"}.Encode(nil)); !ret.OK() {
			x.Fatalf("it could not register: %+v", ret)
		}
		j := must1(x.s.AddJob(x.Context(), xxljob.Job{App: app, Name: "elsewhere " + app, Handler: app}))
		id := must1(x.s.TriggerOne(x.Context(), j.ID, xxljob.Trigger{}))
		run[app] = id
		await.Until(x.T, "the run to be sent", func() bool {
			r := must1(x.store.Run(x.Context(), id))
			return r.State == xxljob.StateDispatched || r.State.Ended()
		})
		if app == "far" {
			says(page, token, "callback", wire.EncodeCallback(nil, wire.CallbackList, []wire.CallbackRequest{{LogID: id, HandleCode: 500, HandleMsg: all}}))
			await.Until(x.T, "its result", func() bool { return must1(x.store.Run(x.Context(), id)).State.Ended() })
		}
	}
	one, two := "runs/"+itoa(run["far"]), "runs/"+itoa(run["refused"])
	for page, shows := range map[string]string{one: "reported and logged", two: "answered"} {
		if root.get(page); strings.Count(root.body, "alert(1)") < 10 {
			x.Errorf("what was %s is not on the page of its run: %s", shows, root.text())
		}
	}
	return []string{one, one + "/log", one + "/log?from=1", two, "runs", "jobs/" + itoa(must1(x.store.Run(x.Context(), run["far"])).JobID) + "/once"}
}

// says is what an executor elsewhere tells a node, and the answer.
func says(node http.Handler, token, endpoint string, body []byte) (ret wire.Return) {
	r := httptest.NewRequest(http.MethodPost, "/api/"+endpoint, bytes.NewReader(body))
	r.Header.Set(wire.HeaderToken, token)
	w := httptest.NewRecorder()
	node.ServeHTTP(w, r)
	if err := ret.Decode(w.Body.Bytes()); err != nil {
		ret.Msg = err.Error()
	}
	return ret
}

// farNode starts a scheduler on the store that executors elsewhere register with, for an app.
func (x *site) farNode(app, token string) http.Handler {
	x.Helper()
	s := must1(xxljob.New(x.store, xxljob.Config{App: "node-of-" + app, Logger: slog.New(slog.DiscardHandler),
		HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{app: {token}}, CallTimeout: 5 * time.Second}}))
	h := must1(s.AdminHandler())
	must(x.T, s.Start(x.Context()))
	x.Cleanup(func() { _ = s.Stop(context.Background()) })
	return h
}

// hostTexts are those of a host: who somebody is, what the console is called, where it links to.
func hostTexts(x *site) (list found) {
	evil := ""
	y := *x
	y.console = must1(console.NewAlike(console.Config{Store: x.store, Scheduler: x.s, Title: "<script>alert(1)</script>\u202e\"'", Label: console.Label{Text: "<i>\u200b</i>"}, Logger: slog.New(slog.DiscardHandler),
		Auth: console.Func(func(*http.Request) (console.User, error) {
			return console.User{Name: evil, Title: evil, Admin: true}, nil
		}, ""),
		Links: func(xxljob.Run) []console.Link {
			return []console.Link{{Text: evil, URL: "https://x.example/" + evil}, {Text: "x", URL: evil}}
		}}))
	y.host = http.StripPrefix("/console", y.console)
	if x.weakened != nil {
		x.weakened(y.console)
	}
	b, job := y.browser(), y.job("orders", "nightly")
	run := y.run(job)
	for _, evil = range evils() {
		b.post("jobs/"+itoa(job.ID)+"/stop", nil)
		for _, page := range []string{"jobs", "runs/" + itoa(run.ID), "changes"} {
			b.get(page)
			for _, tag := range active(strings.ReplaceAll(b.body, `href="https://x.example/`, `href="x/`)) {
				list = append(list, page+" with "+evil+" has "+tag)
			}
			list = append(list, hides(page, b.body)...)
		}
	}
	return list
}

// markup are the tags on pages that do something which ours do not.
func markup(x *site, pages []string) (list []string) {
	b := x.browser()
	b.cookies["xxljob_session"] = &http.Cookie{Name: "xxljob_session", Value: "root is logged in"}
	for _, page := range pages {
		b.get(page)
		for _, tag := range active(b.body) {
			list = append(list, page+" has "+tag)
		}
	}
	return list
}

// unseenIn are the characters on pages that nobody sees.
func unseenIn(x *site, pages []string) (list []string) {
	b := x.browser()
	b.cookies["xxljob_session"] = &http.Cookie{Name: "xxljob_session", Value: "root is logged in"}
	for _, page := range pages {
		b.get(page)
		list = append(list, hides(page, b.body)...)
	}
	return list
}

// typed is what a form has of a text to be sent back as it is.
var typedIn = regexp.MustCompile(`(?s)(?:value|content)="[^"]*"|<textarea.*?</textarea>`)

// hides are the characters of a page that nobody sees, but for those in fields of forms, which are
// as they are stored.
func hides(page, body string) (list []string) {
	text := html.UnescapeString(typedIn.ReplaceAllString(body, ""))
	for i, r := range text {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) && r != '\u3000' && r != '\u00a0' {
			list = append(list, page+" has "+strings.ToValidUTF8(text[max(0, i-60):i], "")+" and then "+strings.ToUpper(string(must1(json.Marshal(string(r))))))
			if len(list) == 5 {
				return list
			}
		}
	}
	return list
}

// rawLog adds to pages with a log what was logged, as it is.
func rawLog(x *site, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		if m := regexp.MustCompile(`/runs/(\d+)/log$`).FindStringSubmatch(r.URL.Path); m != nil {
			res, _ := x.s.Log(r.Context(), must1(parse(m[1])), 1)
			_, _ = w.Write([]byte("<pre>" + html.EscapeString(res.LogContent) + "</pre>"))
		}
	})
}
