package xxljob_test

import (
	"bytes"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// house is the root package with its types, for tests of how its files depend on each
// other.
type house struct {
	set  *token.FileSet
	pkg  *types.Package
	info *types.Info
	uses map[string]map[string][]string // file → file → what of it, in order

	files []string
}

// readHouse type-checks the root, without its tests, by the export data of what it imports.
func readHouse(t *testing.T) *house {
	t.Helper()
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", ".")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	for line := range bytes.Lines(out) {
		name, file, _ := strings.Cut(strings.TrimSpace(string(line)), "\t")
		exports[name] = file
	}
	h := &house{set: token.NewFileSet(), info: &types.Info{Uses: map[*ast.Ident]types.Object{}}}
	var parsed []*ast.File
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(h.set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		h.files, parsed = append(h.files, name), append(parsed, file)
	}
	config := types.Config{Importer: importer.ForCompiler(h.set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	if h.pkg, err = config.Check(module, h.set, parsed, h.info); err != nil {
		t.Fatal(err)
	}
	h.findUses()
	return h
}

func (h *house) fileOf(pos token.Pos) string { return filepath.Base(h.set.Position(pos).Filename) }

// findUses notes each name of the package, methods and fields included, where it is used in
// another file than that which declares it.
func (h *house) findUses() {
	h.uses = map[string]map[string][]string{}
	for id, obj := range h.info.Uses {
		if obj.Pkg() != h.pkg || !obj.Pos().IsValid() {
			continue
		}
		from, to := h.fileOf(id.Pos()), h.fileOf(obj.Pos())
		if from == to {
			continue
		}
		if h.uses[from] == nil {
			h.uses[from] = map[string][]string{}
		}
		if what := h.uses[from][to]; !slices.Contains(what, obj.Name()) {
			h.uses[from][to] = append(what, obj.Name())
		}
	}
	for _, to := range h.uses {
		for _, what := range to {
			slices.Sort(what)
		}
	}
}

// cycles are the sets of files that reach each other, the greatest first.
func (h *house) cycles() [][]string {
	var (
		index, low = map[string]int{}, map[string]int{}
		on         = map[string]bool{}
		stack      []string
		found      [][]string
		visit      func(string)
	)
	visit = func(f string) {
		index[f] = len(index) + 1
		low[f], on[f] = index[f], true
		stack = append(stack, f)
		for _, g := range slices.Sorted(maps.Keys(h.uses[f])) {
			if index[g] == 0 {
				visit(g)
				low[f] = min(low[f], low[g])
			} else if on[g] {
				low[f] = min(low[f], index[g])
			}
		}
		if low[f] != index[f] {
			return
		}
		at := slices.Index(stack, f)
		cycle := slices.Sorted(slices.Values(stack[at:]))
		stack = stack[:at]
		for _, g := range cycle {
			on[g] = false
		}
		if len(cycle) > 1 {
			found = append(found, cycle)
		}
	}
	for _, f := range slices.Sorted(maps.Keys(h.uses)) {
		if index[f] == 0 {
			visit(f)
		}
	}
	slices.SortFunc(found, func(a, b []string) int { return len(b) - len(a) })
	return found
}

// floors are the files of the root, from the lowest floor up. A file uses names of its own
// floor and of lower ones.
var floors = [][]string{
	{ // nouns, and what is wrong with a value
		"alarmrules", "bounds", "chain", "changed", "changedaccounts", "config", "configcheck", "crons", "describe", "doc", "errors", "event", "faults", "group", "handler", "job", "jobcheck", "limits", "logconfig", "lognone", "node", "policies", "readiness", "registry", "retriesof", "retry", "ring", "run", "runtrigger",
		"schedule", "schedulefault", "stats", "store", "storeaccounts", "storealarms", "storechanges", "storedrops", "storejobs", "storelists", "storelogpages", "storelogs", "storenodes", "storeowed", "storeplans", "storereadjobs", "storereads", "storereports", "storeruns", "storestarts", "tokens", "tracer", "window", "words",
	},
	{ // tools
		"batch", "clock", "crew", "duetimes", "duty", "life", "mishaps", "loop", "loops", "quota", "rarely", "storemeter", "storemetered", "tracing", "userexec", "wakes",
	},
	{ // books: what a node knows, each under a lock of its own; of these only shared.go calls the store
		"addressmemory", "alarmflights", "alarmmessage", "appsasked", "attachedset", "beside", "bookstats", "doubts", "early", "engine", "fitness", "flight", "gone", "held", "heldring", "eventqueue", "intake", "intakeroom",
		"intakestore", "landings", "lanes", "lead", "rush", "lease", "logbatch", "logbook", "logdesk", "passing", "places", "indoubtlist", "presence", "unreportedlist", "unreportedshare", "awaited", "order", "jobbook", "ownlists", "plannedrun", "startedrun", "queue", "startbuffers", "serialplaces", "reload", "remote", "roll",
		"rollread", "routed", "routequeue", "seen", "settled", "shared", "shares", "subscribe", "transit", "tries", "turns", "underway", "usercalls", "waiters", "waitingroom",
	},
	{ // decisions: which instants, which address, what an answer means
		"address", "addressask", "addressbook", "addresschoice", "alarmbook", "alarmed", "alarmjob", "alarmtexts", "alarmturns", "appask", "asking", "callee", "cycles", "follow", "instants", "jobread", "links", "logpage", "opinion", "outcome", "owes", "plan", "planroom", "scratch", "probe", "probebook",
		"probecall", "askrun", "unreportedjudge", "route", "strategies", "unrouted", "userrouter",
	},
	{ // duties: each with its own state
		"accepted", "again", "ahead", "alarmcalls", "apart", "attach", "balance", "beat", "beatnews", "busy", "claim", "collect", "deliver", "dispatch", "droprun", "finish", "finishroom", "handover", "herd", "kill", "late", "launch", "leaser", "log", "logcall", "logkeep", "logstored",
		"lost", "orphan", "owed", "planned", "progress", "publish", "receive", "reconcile", "registrar", "registrations", "reread", "reroute", "reserve", "retain", "scan", "send", "sendall", "speaks",
		"start", "startbatch", "take", "takeback", "telling", "tend",
		"starter", "twins", "uncertain", "indoubt", "unreported", "unreportedask", "wait", "waitself", "watch", "admin_results", "applylist", "concurrent", "ensure", "ensurelist", "groups",
		"jobnames", "jobs", "leasenews", "lists", "nextfire", "tell", "trigger",
	},
	{ // the API, and the list of the parts
		"admin", "duties", "jobadmin", "lifecycle", "nodestats", "parts", "scheduler", "stop",
	},
}

// mayCycle are the files that use each other, with the reason that DESIGN gives.
var mayCycle = [][]string{
	{"crons.go", "schedule.go"}, // a schedule and the memo of what it was compiled to
}

// TestFloors holds the floors: no file uses a name of a higher one, and none but a few use
// each other.
func TestFloors(t *testing.T) {
	h := readHouse(t)
	floor := map[string]int{}
	for i, files := range floors {
		for _, f := range files {
			if floor[f+".go"] != 0 {
				t.Errorf("%s.go is on two floors", f)
			}
			floor[f+".go"] = i + 1
		}
	}
	for _, f := range h.files {
		if floor[f] == 0 {
			t.Errorf("%s is on no floor", f)
		}
		for g, what := range h.uses[f] {
			if floor[f] < floor[g] {
				t.Errorf("%s, on floor %d, uses %v of %s, on floor %d", f, floor[f], what, g, floor[g])
			}
		}
		delete(floor, f)
	}
	for f := range floor {
		t.Errorf("%s does not exist", f)
	}
	cycles := h.cycles()
	for _, cycle := range cycles {
		if !slices.ContainsFunc(mayCycle, func(may []string) bool { return slices.Equal(may, cycle) }) {
			t.Errorf("these use each other: %v", cycle)
		}
	}
	if len(cycles) < len(mayCycle) {
		t.Errorf("the list of cycles has %d, and there are %d", len(mayCycle), len(cycles))
	}
}
