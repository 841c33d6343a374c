package xxljob_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

// TestConfigZeroValues: what each zero knob stands for, with XXL-JOB's own
// constant where it has one.
func TestConfigZeroValues(t *testing.T) {
	c := xxljob.Config{}.Complete()
	for _, tt := range []struct {
		knob, of  string
		got, want any
	}{
		{"PreRead", "PRE_READ_MS 5000", c.PreRead, 5 * time.Second},
		{"ScanLimit", "rows per scan (fastMax+slowMax)x20", c.Limits.ScanLimit, (c.Limits.FastLane + c.Limits.SlowLane) * 20},
		{"ScanLimit", "6000", c.Limits.ScanLimit, 6000},
		{"FastLane", "triggerpool.fast.max 200", c.Limits.FastLane, 200},
		{"SlowLane", "triggerpool.slow.max 100", c.Limits.SlowLane, 100},
		{"SlowAfter", "a trigger taking >500 ms counts", c.Limits.SlowAfter, 500 * time.Millisecond},
		{"SlowCount", ">10 in the same minute", c.Limits.SlowCount, 10},
		{"Beat", "BEAT_TIMEOUT 30 s", c.Cluster.Beat, 30 * time.Second},
		{"Dead", "DEAD_TIMEOUT 90 s (3x)", c.Cluster.Dead, 3 * c.Cluster.Beat},
		{"RunRetention", "logretentiondays 30", c.RunRetention, 30 * 24 * time.Hour},
		{"RingSlots", "ring slots 60 (second of minute)", xxljob.RingSlots, 60},

		{"MisfireThreshold", "ours; XXL-JOB 5 s", c.MisfireThreshold, 15 * time.Second},
		{"CatchUp", "ours; XXL-JOB once", c.CatchUp, xxljob.CatchUpEvery},
		{"ChangeRetention", "ours", c.ChangeRetention, 400 * 24 * time.Hour},
		{"MaxPlanned", "ours", c.Limits.MaxPlanned, 1000},
		{"MaxHeld", "ours", c.Limits.MaxHeld, 400_000},
		{"LostAfter", "ours", c.Cluster.LostAfter, 30 * time.Second},
		{"Shards", "ours", c.Cluster.Shards, 32},
		{"LeaseTTL", "ours", c.Cluster.LeaseTTL, 5 * time.Second},
		{"LeaseTTL/5", "renewed every 1 s", c.Cluster.LeaseTTL / 5, time.Second},
		{"trust window", "TTL less a margin of 1 s", xxljob.TrustWindow(c), 4 * time.Second},
		{"LeaseMaxHold", "off", c.Cluster.LeaseMaxHold, time.Duration(0)},
		{"StopGrace", "ours", c.StopGrace, 30 * time.Second},
		{"RouteTimeout", "ours", c.Limits.RouteTimeout, time.Second},
		{"MaxRegistrations", "ours", c.HTTP.MaxRegistrations, 10_000},
		{"Location", "UTC", c.Location, time.UTC},
		{"Logger", "slog.Default", c.Logger, slog.Default()},
		{"Executor.App", "App", c.Executor.App, c.App},
		{"Executor.Logger", "Logger", c.Executor.Logger, c.Logger},

		{"Insecure", "no", c.HTTP.Insecure, false},
		{"AllowDefaultToken", "no", c.HTTP.AllowDefaultToken, false},
		{"AllowSubSecond", "no", c.Limits.AllowSubSecond, false},
		{"StrictHandlers", "no", c.StrictHandlers, false},
		{"Tokens", "none", len(c.HTTP.Tokens), 0},
		{"JobsAPI", "nobody", len(c.HTTP.JobsAPI), 0},
		{"JobsAPIScripts", "nobody", len(c.HTTP.JobsAPIScripts), 0},
		{"Routers", "none of the user's", len(c.Routers), 0},
		{"Registry", "the store's", c.Registry, nil},
		{"Ring", "NewTimeRing", c.Ring, nil},
		{"Hooks.RunStarted", "none", c.Hooks.RunStarted == nil, true},
		{"Hooks.RunEnded", "none", c.Hooks.RunEnded == nil, true},
	} {
		if tt.got != tt.want {
			t.Errorf("%s is %v, want %v (%s)", tt.knob, tt.got, tt.want, tt.of)
		}
	}
	program := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	if c.App != program {
		t.Errorf("App is %q, want the program's base name %q", c.App, program)
	}
	host, _ := os.Hostname()
	if !strings.HasPrefix(c.Node, host+"-"+program) || c.Node == (xxljob.Config{}).Complete().Node {
		t.Errorf("Node is %q, want host name, program and something random", c.Node)
	}
	if err := (xxljob.Config{}).Validate(); err != nil {
		t.Errorf("the zero config: %v", err)
	}
}

// TestConfigKeepsWhatIsSet: defaults are for zero values only.
func TestConfigKeepsWhatIsSet(t *testing.T) {
	set := xxljob.Config{
		App: "app", Node: "node", Location: time.FixedZone("Etc/GMT-1", 3600), Logger: slog.New(slog.DiscardHandler),
		PreRead: 1 * time.Second, MisfireThreshold: 3 * time.Second, CatchUp: xxljob.CatchUpOnce, RunRetention: 13 * time.Hour, ChangeRetention: 25 * time.Hour, StopGrace: 17 * time.Second,
		Cluster: xxljob.ClusterConfig{
			Shards: 14, LeaseTTL: 10 * time.Second, LeaseMaxHold: 16 * time.Second, LostAfter: 11 * time.Second, Beat: 9 * time.Second, Dead: 10 * time.Second,
			PruneAfter: 20 * time.Second,
		},
		HTTP: xxljob.HTTPConfig{MaxRegistrations: 19, CallTimeout: 21 * time.Second},
		Limits: xxljob.Limits{
			ScanLimit: 2, MaxPlanned: 4, MaxHeld: 18_000, FastLane: 5, SlowLane: 6, SlowAfter: 7 * time.Second, SlowCount: 8,
			Overdue: 22 * time.Second, RouteTimeout: 2 * time.Second,
		},
		Logs: xxljob.LogConfig{InStore: true, RunBytes: 24 << 10, JobBytes: 25 << 20, QueueBytes: 26 << 20, BytesPerSecond: 27 << 20},
	}
	c := set.Complete()
	if c.App != set.App || c.Node != set.Node || c.Location != set.Location || c.Logger != set.Logger || c.Executor.App != "app" ||
		c.PreRead != set.PreRead || c.MisfireThreshold != set.MisfireThreshold || c.CatchUp != set.CatchUp || c.RunRetention != set.RunRetention || c.ChangeRetention != set.ChangeRetention ||
		c.StopGrace != set.StopGrace || c.Cluster != core.ClusterConfig(set.Cluster) || !reflect.DeepEqual(c.HTTP, core.HTTPConfig(set.HTTP)) || c.Limits != core.Limits(set.Limits) ||
		fmt.Sprintf("%+v", c.Logs) != fmt.Sprintf("%+v", set.Logs) {
		t.Errorf("set:\n%+v\nused:\n%+v", set, c)
	}
	if err := set.Validate(); err != nil {
		t.Error(err)
	}
}

// TestConfigFaultsAtOnce: New names every bad field and its value in one error,
// and no token.
func TestConfigFaultsAtOnce(t *testing.T) {
	const secret = "s3cr3t-t0k3n"
	bad := xxljob.Config{
		App: strings.Repeat("a", 65), Node: " ", Location: time.Local, CatchUp: "TWICE",
		PreRead: time.Minute, MisfireThreshold: -1, RunRetention: time.Minute, ChangeRetention: time.Hour, StopGrace: -8,
		Cluster: xxljob.ClusterConfig{
			Shards: 1025, LeaseTTL: 2 * time.Hour, LeaseMaxHold: -7, LostAfter: time.Second, Beat: -3 * time.Second, Dead: -4 * time.Second, PruneAfter: time.Millisecond,
		},
		HTTP: xxljob.HTTPConfig{
			MaxRegistrations: 100_001, CallTimeout: 2 * time.Hour,
			Tokens: map[string][]string{"three": {secret, secret, secret}, "empty": {""}, "": {"default_token"}},
		},
		Limits: xxljob.Limits{
			ScanLimit: -11, MaxPlanned: -12, MaxHeld: 9_999, FastLane: -13, SlowLane: -14, SlowAfter: -2, SlowCount: -15, Overdue: -5 * time.Second, RouteTimeout: 6 * time.Second,
		},
		Logs:    xxljob.LogConfig{RunBytes: 1023, JobBytes: -16, QueueBytes: 1 << 20, BytesPerSecond: 1<<30 + 1},
		Routers: map[string]xxljob.Router{"GONE": nil},
	}
	_, err := xxljob.New(memory.New(), bad)
	fields := map[string]string{
		"App": "aaa", "Node": `" "`, "Location": "Local", "CatchUp": "TWICE",
		"PreRead": "1m0s", "MisfireThreshold": "-1ns", "RunRetention": "1m0s", "ChangeRetention": "1h0m0s", "StopGrace": "-8ns",
		"Cluster.Shards": "1025", "Cluster.LeaseTTL": "2h0m0s", "Cluster.LeaseMaxHold": "-7ns", "Cluster.LostAfter": "1s",
		"Cluster.Beat": "-3s", "Cluster.Dead": "-4s", "Cluster.PruneAfter": "1ms",
		"HTTP.MaxRegistrations": "100001", "HTTP.CallTimeout": "2h0m0s",
		"Limits.ScanLimit": "-11", "Limits.MaxPlanned": "-12", "Limits.MaxHeld": "9999", "Limits.FastLane": "-13", "Limits.SlowLane": "-14",
		"Limits.SlowAfter": "-2ns", "Limits.SlowCount": "-15", "Limits.Overdue": "-5s", "Limits.RouteTimeout": "6s",
		"Logs.RunBytes": "1023", "Logs.JobBytes": "-16", "Logs.QueueBytes": "1048576", "Logs.BytesPerSecond": "1073741825",
		"Routers": "GONE",
	}
	if err == nil {
		t.Fatal("no error")
	}
	for field, value := range fields {
		if !strings.Contains(err.Error(), "xxljob: config: "+field+" \"") || !strings.Contains(err.Error(), value) {
			t.Errorf("no fault of %s with %s", field, value)
		}
	}
	for _, app := range []string{`HTTP.Tokens: shared tokens`, `app "three"`, `app "empty"`} {
		if !strings.Contains(err.Error(), app) {
			t.Errorf("no fault of %s", app)
		}
	}
	if strings.Contains(err.Error(), secret) {
		t.Error("a token is in the error")
	}
	if t.Failed() {
		t.Log(err)
	}
}

// plainStore is a store that keeps no logs.
type plainStore struct{ xxljob.Store }

// noSink is a sink.
type noSink struct{}

func (noSink) WriteLogs(context.Context, []xxljob.RunLines) error { return nil }

// TestConfigLogs: logs go to one place, which has to take them.
func TestConfigLogs(t *testing.T) {
	for says, c := range map[string]struct {
		store xxljob.Store
		logs  xxljob.LogConfig
	}{
		"Logs.InStore":  {plainStore{memory.New()}, xxljob.LogConfig{InStore: true}},
		"Logs.Sink":     {memory.New(), xxljob.LogConfig{InStore: true, Sink: noSink{}}},
		"Logs.JobBytes": {memory.New(), xxljob.LogConfig{JobBytes: 1<<40 + 1}},
	} {
		if _, err := xxljob.New(c.store, xxljob.Config{Logs: c.logs}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	for _, logs := range []xxljob.LogConfig{{InStore: true}, {Sink: noSink{}}} {
		if _, err := xxljob.New(memory.New(), xxljob.Config{Logs: logs}); err != nil {
			t.Error(err)
		}
	}
}

// TestConfigLocation: a zone that means something else on every node is refused.
func TestConfigLocation(t *testing.T) {
	if _, err := xxljob.New(memory.New(), xxljob.Config{Location: time.Local}); err == nil || !strings.Contains(err.Error(), "Location") {
		t.Errorf("time.Local: %v", err)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := xxljob.New(memory.New(), xxljob.Config{Location: berlin}); err != nil {
		t.Errorf("Europe/Berlin: %v", err)
	}
}

// TestConfigTokens: the literal default_token needs AllowDefaultToken; two
// tokens an app are for rotation.
func TestConfigTokens(t *testing.T) {
	for _, tt := range []struct {
		tokens map[string][]string
		allow  bool
		ok     bool
	}{
		{map[string][]string{"": {"default_token"}}, false, false},
		{map[string][]string{"app": {"hush-1", "default_token"}}, false, false},
		{map[string][]string{"": {"default_token"}}, true, true},
		{map[string][]string{"": {"hush-1"}, "app": {"hush-2", "hush-3"}}, false, true},
		{map[string][]string{"app": {"hush-1", ""}}, true, false},
		{map[string][]string{"app": {"hush-1", "hush-2", "hush-3"}}, true, false},
	} {
		err := xxljob.Config{HTTP: xxljob.HTTPConfig{Tokens: tt.tokens, AllowDefaultToken: tt.allow}}.Validate()
		if (err == nil) != tt.ok {
			t.Errorf("%v, allowed %t: %v", tt.tokens, tt.allow, err)
		}
		if err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("a token is in %v", err)
		}
	}
}

// TestShortTokens: a token that can be guessed is warned of by the name of its app, and of how to
// allow it; a refused one is counted.
func TestShortTokens(t *testing.T) {
	for _, tt := range []struct {
		http xxljob.HTTPConfig
		want string // the apps of the warning
	}{
		{xxljob.HTTPConfig{}, ""},
		{xxljob.HTTPConfig{Tokens: map[string][]string{"app": {"sixteen-bytes-16"}}}, ""},
		{xxljob.HTTPConfig{Tokens: map[string][]string{"": {"x"}, "app": {"sixteen-bytes-16", "fifteen-bytes-1"}, "other": {"sixteen-bytes-17"}}}, `[\"\" app]`},
		{xxljob.HTTPConfig{Tokens: map[string][]string{"": {"x"}}, AllowShortTokens: true}, ""},
		{xxljob.HTTPConfig{Tokens: map[string][]string{"": {"default_token"}}, AllowDefaultToken: true}, ""},
	} {
		var log strings.Builder
		s, err := xxljob.New(memory.New(), xxljob.Config{App: "host", HTTP: tt.http, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if warned := strings.Contains(log.String(), "HTTP.AllowShortTokens"); warned != (tt.want != "") || strings.Contains(log.String(), "fifteen") {
			t.Errorf("%v: %s", tt.http, &log)
		}
		if len(tt.http.Tokens) < 2 {
			continue
		}
		h, err := s.AdminHandler()
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, "/api/registry", strings.NewReader("{}"))
		r.Header.Set(wire.HeaderToken, "y")
		h.ServeHTTP(httptest.NewRecorder(), r)
		if n := s.Stats().TokensRefused; n != 1 {
			t.Errorf("%d refused tokens are counted", n)
		}
	}
}

// TestZeroConfigOfLongProgram: the zero Config is complete, whatever the program
// is called.
func TestZeroConfigOfLongProgram(t *testing.T) {
	defer func(name string) { os.Args[0] = name }(os.Args[0])
	os.Args[0] = "/usr/bin/" + strings.Repeat("x", 200)
	if _, err := xxljob.New(memory.New(), xxljob.Config{}); err != nil {
		t.Errorf("%.120v", err)
	}
}

// TestConfigLocationIsIANA: a Location that a stored schedule could not name is
// refused.
func TestConfigLocationIsIANA(t *testing.T) {
	for _, name := range []string{"Asia/Nowhere", ""} {
		if _, err := xxljob.New(memory.New(), xxljob.Config{Location: time.FixedZone(name, 3600)}); err == nil || !strings.Contains(err.Error(), "Location") {
			t.Errorf("zone %q: %v", name, err)
		}
	}
}

// TestConfigNode: a name of a node is part of addresses and of lines that are read by
// columns. What the host is called makes no bad default.
func TestConfigNode(t *testing.T) {
	for _, name := range []string{"a b", " a", "a\t", "a\nb", "a\x7f", "a\u00a0b", "a\u200bb", "a\u0085", "a\x00", "a\xff", "\u3000"} {
		_, err := xxljob.New(memory.New(), xxljob.Config{Node: name})
		if err == nil || strings.Count(err.Error(), "xxljob: config: Node ") != 1 {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"a", "node-1.example.org:8080", "节点", "größe_7", "a/b", strings.Repeat("n", 200)} {
		if err := (xxljob.Config{Node: name}).Validate(); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	was := os.Args[0]
	defer func() { os.Args[0] = was }()
	os.Args[0] = filepath.Join("somewhere", "my program\t1")
	if c := (xxljob.Config{App: "app"}); c.Validate() != nil || !strings.Contains(c.Complete().Node, "-my-program-1-") {
		t.Errorf("the default is %q: %v", c.Complete().Node, c.Validate())
	}
}

// TestAppIsNamedWhereTheStoreStays: without Config.App it is the name of the program's file, which is a
// warning where nothing outlives the process, and an error with any other store, also one that says
// nothing of that; the error says what the name was, and with that name it is none.
func TestAppIsNamedWhereTheStoreStays(t *testing.T) {
	log := &stage.LogLines{}
	var cfg xxljob.Config
	log.LogTo(&cfg)
	if _, err := xxljob.New(memory.New(), cfg); err != nil {
		t.Errorf("in memory: %v", err)
	}
	if lines := log.With("level=WARN", "Config.App is empty"); len(lines) != 1 {
		t.Errorf("in memory the log says %q", lines)
	}
	stays := struct{ xxljob.Store }{memory.New()}
	_, err := xxljob.New(stays, cfg)
	var field *xxljob.FieldError
	was := cfg.Complete().App
	if !errors.As(err, &field) || field.Field != "App" || !strings.Contains(err.Error(), fmt.Sprintf("%q", was)) {
		t.Fatalf("with a store that stays: %v; want a fault of App that names %q", err, was)
	}
	cfg.App = was
	if _, err := xxljob.New(stays, cfg); err != nil {
		t.Errorf("with the name that was: %v", err)
	}
}

// TestMiddlewareThatIsNil: it is named by the list that it is in, and its place there.
func TestMiddlewareThatIsNil(t *testing.T) {
	same := func(h xxljob.Handler) xxljob.Handler { return h }
	_, err := xxljob.New(memory.New(), xxljob.Config{App: "app", Middleware: []func(xxljob.Handler) xxljob.Handler{same, nil},
		Executor: executor.Config{Middleware: []func(xxljob.Handler) xxljob.Handler{nil, same}}})
	for _, want := range []string{"Middleware[1]", "Executor.Middleware[0]"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want it to name %s", err, want)
		}
	}
}

// TestNothingIsForgotten: what programs set reaches the rooms, and what these say reaches
// programs. Each field of one side is on the other, and none is empty there that was filled here.
func TestNothingIsForgotten(t *testing.T) {
	var set xxljob.Config
	fillFields(reflect.ValueOf(&set).Elem())
	set.Registry, set.Ring, set.Tracer, set.Logs.Sink = someRegistry{}, xxljob.NewTimeRing(), someTracer{}, someSink{}
	arrives(t, "Config", reflect.ValueOf(set), reflect.ValueOf(xxljob.ForNode(set)))
	var stats core.Stats
	fillFields(reflect.ValueOf(&stats).Elem())
	arrives(t, "Stats", reflect.ValueOf(stats), reflect.ValueOf(xxljob.StatsOf(stats)))
	var event core.Event
	fillFields(reflect.ValueOf(&event).Elem())
	event.Err = errors.New("an error")
	arrives(t, "Event", reflect.ValueOf(event), reflect.ValueOf(xxljob.EventOf(&event)))
}

// fillFields gives each field something, but interfaces.
func fillFields(v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Int, reflect.Int64:
			f.SetInt(int64(i + 1))
		case reflect.Uint64:
			f.SetUint(uint64(i + 1))
		case reflect.String:
			f.SetString("x")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Func:
			f.Set(reflect.MakeFunc(f.Type(), func([]reflect.Value) []reflect.Value { return nil }))
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case reflect.Map:
			f.Set(reflect.MakeMap(f.Type()))
			f.SetMapIndex(reflect.ValueOf("x"), reflect.Zero(f.Type().Elem()))
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.Struct:
			if f.Type() == reflect.TypeFor[time.Time]() {
				f.Set(reflect.ValueOf(time.Unix(1, 0)))
			} else {
				fillFields(f)
			}
		}
	}
}

// arrives compares the fields of two structs by their names.
func arrives(t *testing.T, name string, given, got reflect.Value) {
	t.Helper()
	for i := range got.NumField() {
		if field := got.Type().Field(i).Name; !given.FieldByName(field).IsValid() {
			t.Errorf("%s.%s is on one side only", name, field)
		}
	}
	for i := range given.NumField() {
		field := given.Type().Field(i).Name
		there := got.FieldByName(field)
		switch {
		case !there.IsValid():
			t.Errorf("%s.%s is on one side only", name, field)
		case there.IsZero():
			t.Errorf("%s.%s was given and does not arrive", name, field)
		case there.Kind() == reflect.Struct && there.Type() != given.Field(i).Type():
			arrives(t, name+"."+field, given.Field(i), there)
		case there.Kind() == reflect.Map && there.Len() != given.Field(i).Len():
			t.Errorf("%s.%s has %d entries, want %d", name, field, there.Len(), given.Field(i).Len())
		}
	}
}

type (
	someRegistry struct{ xxljob.Registry }
	someTracer   struct{ xxljob.Tracer }
	someSink     struct{ xxljob.LogSink }
)
