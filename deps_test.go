package xxljob_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/xxljob/xxljob/internal/test/stage"
)

// module is the path of this module; packages are named below it, the root as
// ".".
const module = "github.com/xxljob/xxljob"

// Modules of others, and the packages of them that are used.
const (
	gronx        = "github.com/adhocore/gronx"
	gomail       = "github.com/wneessen/go-mail"
	gomailsmtp   = "github.com/wneessen/go-mail/smtp"
	flock        = "github.com/gofrs/flock"
	memdb        = "github.com/hashicorp/go-memdb"
	argon2       = "golang.org/x/crypto/argon2"
	errgroup     = "golang.org/x/sync/errgroup"
	singleflight = "golang.org/x/sync/singleflight"
	pgx          = "github.com/jackc/pgx/v5"
	pgconn       = "github.com/jackc/pgx/v5/pgconn"
	pgtype       = "github.com/jackc/pgx/v5/pgtype"
	pgxpool      = "github.com/jackc/pgx/v5/pgxpool"
	stdlib       = "github.com/jackc/pgx/v5/stdlib"
)

// directModules are the modules that a go.mod may require directly: those of the library,
// each with the reason that DESIGN.md gives, and those of examples that are modules of
// their own, so that nothing of theirs is the library's.
var directModules = map[string][]string{
	"go.mod": {gronx, flock, memdb, pgx, gomail, "golang.org/x/crypto", "golang.org/x/sync"},
	"otelxxl/go.mod": {module, "go.opentelemetry.io/otel", "go.opentelemetry.io/otel/metric", "go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/sdk/metric",
		"go.opentelemetry.io/otel/trace"},
	"examples/metrics/go.mod": {module, module + "/otelxxl", "github.com/prometheus/client_golang", "github.com/prometheus/common", "go.opentelemetry.io/otel",
		"go.opentelemetry.io/otel/exporters/prometheus", "go.opentelemetry.io/otel/exporters/stdout/stdouttrace", "go.opentelemetry.io/otel/metric", "go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/sdk/metric"},
	"examples/console/go.mod":   {module, "github.com/coreos/go-oidc/v3", "github.com/go-jose/go-jose/v4", "golang.org/x/oauth2"},
	"cmd/xxljob/go.mod":         {module, "github.com/alecthomas/kong", pgx, "golang.org/x/sync", "gonum.org/v1/plot"},
	"console/browser/go.mod":    {module, "github.com/chromedp/cdproto", "github.com/chromedp/chromedp"},
	"examples/chi/go.mod":       {module, "github.com/go-chi/chi/v5", "golang.org/x/sync"},
	"examples/from-cron/go.mod": {module, "github.com/robfig/cron/v3"},
	"bench/peers/go.mod": {module, pgx, "github.com/riverqueue/river", "github.com/riverqueue/river/riverdriver/riverpgxv5", "github.com/go-co-op/gocron/v2",
		"github.com/reugn/go-quartz", "github.com/robfig/cron/v3"},
}

// internalOf are the packages below internal of the library that a module may import which is
// a program: nobody requires it, so it is compiled with the very release that its go.mod names.
var internalOf = map[string][]string{
	"cmd/xxljob/go.mod": {"internal/test/measure", "internal/test/pgtest"},
}

// mayImport is the diagram of doc.go: what each package may import beside the
// standard library. A package whose name ends with /* stands for all below it.
var mayImport = map[string][]string{
	// 0 what leaves may stand on
	"wire/internal/json": nil,
	"internal/guard":     nil,
	"internal/slots":     nil,
	"internal/timering":  nil,
	"internal/idmap":     nil,
	"internal/inside":    nil,
	"internal/urgent":    nil,
	"internal/grants":    nil,
	"internal/release":   nil,
	// 1 leaves
	"internal/failpoint": nil,
	"route":              nil,
	"block":              nil,
	"internal/blockrule": {"block"},
	"wire":               {"wire/internal/json", "internal/guard", "internal/slots"},
	"internal/errs":      nil,
	"internal/loop":      {"internal/errs", "internal/slots", "internal/urgent", errgroup},
	"internal/fairqueue": {"internal/loop", "internal/errs"},
	"schedule":           {"internal/cron", "internal/errs"},
	"store":              {"schedule", "route", "block", "internal/blockrule", "alarm", "internal/errs"},
	"internal/compact":   {"store", "internal/timering"},
	"alarm":              nil,
	"internal/cron":      {"internal/errs", gronx},
	// 1 alarmers, which know no scheduler
	"alarm/log":     {"alarm"},
	"alarm/mail":    {"alarm", gomail, gomailsmtp},
	"alarm/webhook": {"alarm", "wire", "internal/guard"},
	// 2, 3 engine
	"executor":                {"executor/internal/spool", "wire", "block", "internal/blockrule", "internal/guard", "internal/idmap", "internal/inside"},
	"executor/internal/spool": {"wire", flock},
	// The rooms of the engine, from the lowest up: a new arrow needs a reason.
	"internal/engine/lease":    {"internal/loop", "internal/timering", "store"},
	"internal/engine/core":     {"internal/engine/lease", "alarm", "executor", "internal/errs", "internal/guard", "internal/loop", "schedule", "store", "wire"},
	"internal/engine/plan":     {"internal/engine/core", "internal/errs", "internal/loop", "schedule", "store"},
	"internal/engine/queue":    {"internal/engine/core", "internal/engine/lease", "internal/blockrule", "internal/compact", "internal/guard", "internal/idmap", "internal/loop", "internal/timering", "store", "wire"},
	"internal/engine/registry": {"internal/engine/core", "executor", "internal/errs", "internal/fairqueue", "internal/guard", "internal/loop", "internal/urgent", "route", "store", "wire", singleflight},
	"internal/engine/events":   {"internal/engine/core", "internal/errs", "internal/guard", "internal/loop", "store"},
	"internal/engine/alarms":   {"internal/engine/core", "alarm", "finding", "internal/errs", "internal/guard", "internal/loop", "internal/urgent", "store"},
	"internal/engine/router":   {"internal/engine/core", "internal/engine/lease", "internal/engine/queue", "internal/engine/registry", "internal/blockrule", "executor", "internal/compact", "internal/errs", "internal/guard", "internal/loop", "internal/urgent", "route", "internal/timering", "store", "wire"},
	"internal/engine/runlog":   {"internal/engine/core", "internal/engine/registry", "internal/errs", "internal/guard", "internal/loop", "internal/urgent", "store", "wire"},
	"internal/engine/scan":     {"internal/engine/core", "internal/engine/events", "internal/engine/lease", "internal/engine/plan", "internal/engine/queue", "internal/compact", "internal/loop", "schedule", "internal/timering", "store"},
	"internal/engine/dispatch": {"internal/engine/core", "internal/engine/events", "internal/engine/lease", "internal/engine/queue", "internal/engine/registry", "internal/engine/router", "internal/engine/runlog", "block", "internal/blockrule", "internal/compact", "internal/errs", "internal/inside", "internal/loop", "internal/urgent", "route", "schedule", "internal/timering", "store", "wire", errgroup},
	"internal/engine/catalog":  {"internal/engine/core", "internal/engine/events", "internal/engine/plan", "internal/engine/registry", "internal/engine/router", "block", "internal/blockrule", "internal/cron", "internal/errs", "internal/grants", "internal/loop", "route", "schedule", "store", "wire"},
	"internal/engine/admin":    {"internal/engine/catalog", "internal/engine/core", "internal/engine/dispatch", "internal/engine/registry", "internal/errs", "internal/fairqueue", "internal/grants", "internal/loop", "internal/urgent", "schedule", "store", "wire", singleflight},
	"internal/engine/node":     {"internal/engine/admin", "internal/engine/alarms", "internal/engine/catalog", "internal/engine/core", "internal/engine/dispatch", "internal/engine/events", "internal/engine/lease", "internal/engine/queue", "internal/engine/registry", "internal/engine/router", "internal/engine/runlog", "internal/engine/scan", "alarm", "executor", "internal/errs", "internal/guard", "internal/loop", "internal/release", "internal/urgent", "schedule", "store", "wire"},
	".":                        {"alarm", "block", "executor", "internal/engine/catalog", "internal/engine/core", "internal/engine/events", "internal/engine/node", "internal/errs", "internal/grants", "internal/timering", "route", "schedule", "store", "wire"},
	// 4 backends, which know the nouns and no scheduler
	"store/memory":                 {"store", "schedule", "alarm", memdb},
	"store/postgres":               {"store", "schedule", "alarm", "internal/guard", "internal/urgent", "internal/failpoint", pgx, pgconn, pgtype, pgxpool},
	"store/storetest":              {"store", "schedule", "alarm", "store/storetest/internal/own"},
	"store/storetest/internal/own": nil,
	// Only the test of storetest imports it: stores that break the contract.
	"store/storetest/internal/mutant": {"store", "alarm", "internal/test/bent"},
	"jobfile":                         {"store", "schedule", "route", "internal/errs"},
	"finding":                         {"store", "internal/blockrule", "alarm"},
	"xxljobtest":                      {".", "executor", "wire", "store/memory"},
	// 4 the console, which sees a store and a scheduler as any user does
	"console":                {".", "finding", "store", "wire", "jobfile", "route", "block", "internal/grants", "internal/release", "internal/slots", "console/internal/lang", "console/internal/diff", "console/internal/login", "console/internal/look", "console/internal/web"},
	"console/internal/lang":  nil,
	"console/internal/diff":  nil,
	"console/internal/look":  {"console/internal/lang", "console/internal/web"},
	"console/internal/login": {"console/internal/web", "internal/slots", "store", argon2},
	"console/internal/web":   {"internal/slots", singleflight},
	// Only tests import it: what a user might write who does not know this module.
	"internal/test/plain": nil,
	// Only tests import it: which methods of a store runs wait for.
	"internal/test/asker": {".", "store"},
	// Only tests import it: stores of which a test bends a method.
	"internal/test/bent": {"store", "store/storetest"},
	// Only tests import it: waiting for what others bring about.
	"internal/test/await": nil,
	// Only tests of the scheduler import it: nodes, and what their handlers have seen.
	"internal/test/stage": {".", "wire", "route", "store", "store/memory", "store/storetest", "internal/test/asker", "internal/test/plain", "internal/urgent"},
	// Nothing but tests: a scheduler and clusters of them, seen from outside.
	"internal/test/scenario": nil,
	// Nothing but make bench-compare.
	"internal/test/benchcompare": {"internal/test/measure"},
	// Nothing but .ci/run and make stress: it runs tests, and reads what they say.
	"internal/test/gate": nil,
	// For load runs and benchmarks: it measures, and knows nothing of this module.
	"internal/test/measure": nil,
	// Nothing but a script, of make audit, and its test.
	"internal/test/modules": nil,
	// Nothing but a test: the module compiles for other systems.
	"internal/test/systems": nil,
	// For tests and the programs that find faults: it starts the Postgres that
	// they need, and knows nothing of this module.
	"internal/test/pgtest": {pgx, pgxpool},
	// The auditor shares no code with what it audits.
	"internal/test/chaos/audit":   nil,
	"internal/test/chaos/control": nil,
	"internal/test/chaos/proxy":   nil,
	"internal/test/chaos/sink":    {"internal/test/chaos/audit"},
	"internal/test/chaos":         {"internal/test/chaos/audit", "internal/test/chaos/control", "internal/test/chaos/proxy", "internal/test/chaos/sink", "internal/failpoint", "internal/test/pgtest", pgx},
	"internal/test/chaos/node":    {".", "alarm", "alarm/mail", "alarm/webhook", "executor", "internal/test/chaos/audit", "internal/test/chaos/control", "store/memory", "store/postgres", pgxpool},
	"internal/test/chaos/cmd":     {"internal/test/chaos"},
	// Who judges a siege shares no code with what is besieged.
	"internal/test/siege/judge": nil,
	"internal/test/siege":       {".", "console", "store", "wire", "store/postgres", "internal/test/siege/judge", "internal/test/pgtest", pgx, pgxpool},
	"internal/test/siege/cmd":   {"internal/test/siege"},
	// Nothing but tests: others' executors and admins against ours.
	"interop": nil,
	// 5 programs
	"examples/*": {".", "console", "jobfile", "alarm", "alarm/mail", "alarm/webhook", "alarm/log", "executor", "wire", "block", "route", "store/memory", "store/postgres", "xxljobtest", errgroup, pgx, pgxpool},
}

// testsMayImport is what the tests of a package may import beside that, and
// beside the package itself. Tests of leaves get what tests share, and nothing
// that the leaf would have to be tested with. Tests of a room have no scheduler: what is below one
// of them would be compiled anew for each room. Those with a scheduler are in
// internal/test/scenario.
var testsMayImport = map[string][]string{
	"internal/engine/router":   {"block"},
	"internal/engine/queue":    {"block"},
	".":                        {"internal/engine/lease", "store/memory", "store/storetest", "xxljobtest", "internal/test/plain", "internal/test/asker", "internal/test/await", "internal/test/bent", "internal/test/stage"},
	"schedule":                 {"store", "internal/test/stage"},
	"store":                    {"internal/test/stage"},
	"internal/engine/registry": {"internal/engine/lease"},
	"executor":                 {"internal/test/await"},
	"store/memory":             {".", "store/storetest", "xxljobtest", "executor", "wire", "block"},
	"store/postgres":           {".", "block", "console", "store/storetest", "internal/test/asker", "internal/test/await", "internal/test/measure", "internal/test/pgtest", "internal/test/stage", "executor", "route", "wire", stdlib, errgroup},
	"store/storetest":          {".", "store/memory", "store/storetest/internal/mutant", "store/storetest/internal/own"},
	"finding":                  {".", "schedule", "store/memory", "internal/test/stage"},
	"xxljobtest":               {"block", "route"},
	"console":                  {"alarm", "store/memory", "store/postgres", "store/storetest", "wire", "internal/test/await", "internal/test/bent", "internal/test/pgtest", "internal/test/stage", argon2, pgxpool, pgx},
	"interop":                  {".", "wire", "executor", "block", "route", "store/memory", "store/postgres", "internal/test/pgtest"},
	"examples/*":               {"store", "internal/test/await", "internal/test/pgtest", "internal/test/stage"},

	"internal/test/pgtest":      {"internal/test/await"},
	"internal/test/scenario":    {".", "alarm", "finding", "executor", "wire", "block", "route", "store", "store/memory", "store/storetest", "internal/urgent", "internal/test/plain", "internal/test/asker", "internal/test/await", "internal/test/bent", "internal/test/stage", "xxljobtest"},
	"internal/test/chaos":       {"internal/test/await"},
	"internal/test/chaos/proxy": {"internal/test/await"},
}

// packageVars are the package-level variables of libraries beside error
// sentinels and compile-time checks. All but the first are tables that nothing
// writes.
var packageVars = []string{
	"schedule crons", // the memo of compiled schedules and zones: see DESIGN.md
	"store glueTypes",
	"store sentences",
	"finding gravities",
	"finding causes",
	"finding alarmsOf",
	"console files", // embedded
	"console prefix",
	"console colors",
	"console ranks",
	"console errNotThere", // answers that are alike for all
	"console errNobody",
	"console errReadOnly",
	"console errForeign",
	"console errBadMethod",
	"console errSetup",
	"console errMustChange",
	"console errNoLogin",
	"console browsers",
	"console systems",
	"console pickers",
	"console presets",
	"console muteSpans",
	"console tokenSpans",
	"console spans",
	"console timeRanges",
	"console outcomesByRank",
	"console together",
	"console tables",
	"console jobStates",
	"console jobFilters",
	"console runFilters",
	"console changeFilters",
	"console sharedTemplates",
	"console ownPart",
	"console/internal/lang tags",
	"console/internal/look choices",
	"console/internal/look chosenNames",
	"console/internal/web ansiColors",
	"console/internal/web ErrTooLarge",
	"console/internal/web errManyBodies",
	"console/internal/web errSlowBody",
	"console/internal/web packers", // a pool
	"store/storetest week",
	"executor endpoints",
	"executor localBatch",
	"executor clusterBatch",
	"store stateNames",
	"internal/cron monthLength",
	"internal/cron monthStart",
	"internal/failpoint points",        // the table of the process, with the build tag only
	"store/postgres migrations",        // embedded files
	"internal/test/chaos steppedClock", // embedded
	"store/postgres stateIndexes",
	"store/postgres isPlanned", // conditions on states, as the indexes have them
	"store/postgres isStarted",
	"store/postgres isOver",
	"store/postgres isBad",
	"store/postgres isSkipped",
	"store/postgres infoColumns",
	"store/postgres linkColumns",
	"store/postgres jobColumns",
	"store/postgres nextColumns",
	"store/postgres definitionColumns",
	"store/postgres reportColumns",
	"store/postgres runFields",
	"store/postgres runColumns",
	"store/postgres routes",
	"store/postgres storedNumbers",
	"store/postgres statementPatience", // tests make both longer
	"store/postgres answerPatience",
	"store/postgres usuallyAhead",   // tests make it shorter
	"internal/test/pgtest pristine", // the memo of initdb, for a process of tests
	"store/postgres schemaName",
	"store/postgres castTo",
	"store/postgres called",
	"wire never",
	"wire/internal/json words",
	"wire compatible",
	"wire wellKnown",
	"wire local",
	"internal/test/stage faultsOfUsers",
	"internal/test/pgtest theServer", // test support: one cluster for the tests of a process
}

// source is one Go file of the module.
type source struct {
	name string // slash-separated, from the root
	pkg  string // its directory
	test bool
	file *ast.File
}

// sources parses every Go file of the module, for all systems alike. A directory
// with a go.mod of its own is another module.
func sources(t *testing.T) []source {
	t.Helper()
	all, err := parsedOnce()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// parsedOnce is for all tests that look at them: to parse them takes longer than to look.
var parsedOnce = sync.OnceValues(func() (all []source, err error) {
	err = filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() {
			if name != "." && (base == "testdata" || base == "vendor" || base == "bin" || base[0] == '.' || base[0] == '_') {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil && name != "." {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(base, ".go") || base[0] == '.' || base[0] == '_' {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		all = append(all, source{name: name, pkg: path.Dir(name), test: strings.HasSuffix(base, "_test.go"), file: file})
		return nil
	})
	return all, err
})

// entry returns the table's key for a package, "" when it has none.
func entry(pkg string) string {
	for key := range mayImport {
		below, ok := strings.CutSuffix(key, "*")
		if key == pkg || ok && strings.HasPrefix(pkg, below) {
			return key
		}
	}
	return ""
}

// isStandard reports whether an import path is of the standard library: its
// first element has no dot.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// inModule returns the name of a package of this module.
func inModule(imported string) (pkg string, ok bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

func TestImports(t *testing.T) {
	if stage.Detector {
		t.Skip("it reads sources: the race detector has nothing to say of it")
	}
	seen := map[string]bool{}
	for _, s := range sources(t) {
		key := entry(s.pkg)
		if key == "" {
			if !seen[s.pkg] {
				t.Errorf("package %s is not in the table of deps_test.go", s.pkg)
			}
			seen[s.pkg] = true
			continue
		}
		seen[key] = true
		allowed := mayImport[key]
		if s.test {
			allowed = slices.Concat(allowed, testsMayImport[key], []string{s.pkg})
		}
		for _, spec := range s.file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if isStandard(imported) {
				continue
			}
			name := imported
			if pkg, ok := inModule(imported); ok {
				name = pkg
			}
			if !slices.Contains(allowed, name) {
				t.Errorf("%s: package %s must not import %s", s.name, s.pkg, imported)
			}
		}
	}
	for key := range mayImport {
		if !seen[key] {
			t.Errorf("package %s of the table of deps_test.go does not exist", key)
		}
	}
}

// TestArrowsGoDown checks the table itself: no package reaches itself.
func TestArrowsGoDown(t *testing.T) {
	var visit func(pkg string, trail []string)
	visit = func(pkg string, trail []string) {
		if slices.Contains(trail, pkg) {
			t.Fatalf("a circle: %s", strings.Join(append(trail, pkg), " -> "))
		}
		for _, next := range mayImport[pkg] {
			visit(next, append(trail, pkg))
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(mayImport)) {
		visit(pkg, nil)
	}
}

func TestDirectModules(t *testing.T) {
	files, err := filepath.Glob("examples/*/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		files[i] = filepath.ToSlash(files[i])
	}
	files = append(files, "go.mod", "otelxxl/go.mod", "cmd/xxljob/go.mod", "console/browser/go.mod", "bench/peers/go.mod")
	work, err := os.ReadFile("go.work")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if dir := path.Dir(file); !strings.Contains(string(work), "\t./"+dir+"\n") && dir != "." {
			t.Errorf("go.work does not use %s", dir)
		}
		direct := requiredDirectly(t, file)
		if want := slices.Sorted(slices.Values(directModules[file])); !slices.Equal(direct, want) {
			t.Errorf("%s requires %v directly, want %v", file, direct, want)
		}
	}
	if len(files) != len(directModules) {
		t.Errorf("there are %v, and the table has %d", files, len(directModules))
	}
}

// TestProgramsBringZones: programs that are put into images as they are bring the time zones,
// which an image from scratch has not; the library leaves that to its hosts.
func TestProgramsBringZones(t *testing.T) {
	if stage.Detector {
		t.Skip("it reads sources: the race detector has nothing to say of it")
	}
	const zones = "time/tzdata"
	imports := func(file *ast.File) bool {
		return slices.ContainsFunc(file.Imports, func(spec *ast.ImportSpec) bool { return spec.Path.Value == strconv.Quote(zones) })
	}
	for _, name := range []string{"examples/standalone/main.go", "cmd/xxljob/main.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		if !imports(file) {
			t.Errorf("%s does not import %s", name, zones)
		}
	}
	for _, src := range sources(t) {
		if !src.test && !strings.HasPrefix(src.pkg, "examples/") && imports(src.file) {
			t.Errorf("%s imports %s, which is for programs", src.name, zones)
		}
	}
}

// TestModulesImportWhatIsPublic: a module that is released by itself is compiled with later
// releases of the library, which may change what is below internal. Tests are run beside the
// library of the same commit alone, and so is bench/peers, which nobody requires; programs are
// compiled with one release: internalOf.
func TestModulesImportWhatIsPublic(t *testing.T) {
	n := 0
	for _, file := range slices.Sorted(maps.Keys(directModules)) {
		own := module + "/" + path.Dir(file)
		if own == module+"/." || own == module+"/bench/peers" {
			continue
		}
		err := filepath.WalkDir(path.Dir(file), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			n++
			parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, spec := range parsed.Imports {
				imported, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					return err
				}
				pkg, ours := inModule(imported)
				if ours && slices.Contains(internalOf[file], pkg) {
					continue
				}
				if !isStandard(imported) && strings.Contains(imported+"/", "/internal/") && !strings.HasPrefix(imported, own+"/") {
					t.Errorf("%s imports %s, which is another module's own", name, imported)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n == 0 {
		t.Error("no files were read")
	}
}

// requiredDirectly returns the modules that a go.mod requires, but for indirect ones.
func requiredDirectly(t *testing.T, file string) (direct []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(file))
	if err != nil {
		t.Fatal(err)
	}
	inBlock := false
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) > 1 && fields[0] == "require" && fields[1] == "(":
			inBlock = true
			continue
		case len(fields) == 1 && fields[0] == ")":
			inBlock = false
		case len(fields) > 2 && fields[0] == "require":
			fields = fields[1:]
		case !inBlock:
			continue
		}
		if len(fields) > 1 && !strings.Contains(line, "// indirect") {
			direct = append(direct, fields[0])
		}
	}
	slices.Sort(direct)
	return direct
}

// TestNoPackageState looks at libraries: no init, and no package-level variable
// that could be written to, beside the few that are listed.
func TestNoPackageState(t *testing.T) {
	if stage.Detector {
		t.Skip("it reads sources: the race detector has nothing to say of it")
	}
	found := map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == "init" {
					t.Errorf("%s: func init: packages must not do anything by being imported", s.name)
				}
			case *ast.GenDecl:
				if d.Tok != token.VAR || s.file.Name.Name == "main" {
					continue
				}
				for _, spec := range d.Specs {
					for _, name := range mutable(spec.(*ast.ValueSpec)) {
						name = s.pkg + " " + name
						found[name] = true
						if !slices.Contains(packageVars, name) {
							t.Errorf("%s: package-level variable %s: give it an owner, or list it in deps_test.go with a reason", s.name, name)
						}
					}
				}
			}
		}
	}
	for _, name := range packageVars {
		if !found[name] {
			t.Errorf("package-level variable %s of the list does not exist", name)
		}
	}
}

// mutable returns the names of a declaration that are neither blank nor error
// sentinels.
func mutable(spec *ast.ValueSpec) []string {
	var names []string
	for i, name := range spec.Names {
		sentinel := false
		if i < len(spec.Values) && strings.HasPrefix(strings.ToLower(name.Name), "err") {
			call, ok := spec.Values[i].(*ast.CallExpr)
			sentinel = ok && (isCallOf(call, "errors", "New") || isCallOf(call, "fmt", "Errorf"))
			if of, ok := spec.Values[i].(*ast.SelectorExpr); ok { // one that is named again where people look
				sentinel = fmt.Sprint(of.X) == "errs" && of.Sel.Name == name.Name
			}
		}
		if name.Name != "_" && !sentinel {
			names = append(names, name.Name)
		}
	}
	return names
}

// ownTimers are the functions of the rooms that start a timer whose function runs on a goroutine of
// nobody's, with why nothing of it is left behind Stop.
var ownTimers = map[string]string{
	"internal/engine/node stop":         "it ends Stop itself, at most LastWords after the end of its ctx",
	"internal/engine/events End":        "as above",
	"internal/engine/events tell":       "an event may come before Start, when there are no loops; it does nothing once all is over",
	"internal/engine/router callRouter": "it is stopped when the call returns, and Stop waits for the call until that time",
}

// TestTimersHaveOwners looks for timers of the rooms that nobody waits for: what waits for a time is a
// goroutine of a loop's group, which ends with it.
func TestTimersHaveOwners(t *testing.T) {
	if stage.Detector {
		t.Skip("it reads sources: the race detector has nothing to say of it")
	}
	found := map[string]bool{}
	for _, s := range sources(t) {
		if s.test || !strings.HasPrefix(s.pkg, "internal/engine/") {
			continue
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && isCallOf(call, "time", "AfterFunc") {
					name := s.pkg + " " + f.Name.Name
					if found[name] = true; ownTimers[name] == "" {
						t.Errorf("%s: %s starts a timer: have a goroutine of a group wait (loop.Group.Try, loop.Sleep), or list it in deps_test.go with a reason", s.name, f.Name.Name)
					}
				}
				return true
			})
		}
	}
	for name := range ownTimers {
		if !found[name] {
			t.Errorf("%s of the list starts no timer", name)
		}
	}
}

func isCallOf(call *ast.CallExpr, pkg, name string) bool {
	fun, ok := call.Fun.(*ast.SelectorExpr)
	return ok && fmt.Sprint(fun.X) == pkg && fun.Sel.Name == name
}
