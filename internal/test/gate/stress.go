package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// stressOptions are the flags of gate stress.
type stressOptions struct {
	packages, run, only string
	n, long, busy       int
	dir                 string
	resume              bool
	timeout             time.Duration
}

// combination is how tests are run in one round.
type combination struct {
	Race  bool
	Procs int
	Busy  bool
}

func (c combination) String() string {
	name := fmt.Sprintf("procs=%d", c.Procs)
	if c.Race {
		name = "race," + name
	}
	if c.Busy {
		name += ",busy"
	}
	return name
}

// combinations are the twelve, in an order in which the first three differ most: those are what
// a test of more than ten seconds gets. The first is the one that tells how long a test takes.
func combinations(only string) (list []combination) {
	all := []combination{
		{false, 2, false}, {true, 1, true}, {true, 8, false}, {false, 8, true}, {true, 2, false}, {false, 1, true},
		{true, 8, true}, {false, 8, false}, {true, 2, true}, {false, 1, false}, {false, 2, true}, {true, 1, false},
	}
	for _, c := range all {
		if c.String() == only {
			return []combination{c}
		}
		if !slices.ContainsFunc(strings.Split(only, ","), func(part string) bool { return !slices.Contains(strings.Split(c.String()+",", ","), part) }) {
			list = append(list, c)
		}
	}
	return list
}

// rounds are the combinations of n rounds. What is left when each has had its turn goes to
// those that take least time, without the detector and without busy processes.
func rounds(all []combination, n int) (list []combination) {
	quick := slices.DeleteFunc(slices.Clone(all), func(c combination) bool { return c.Race || c.Busy })
	if len(quick) == 0 || n >= 10*len(all) {
		quick = all
	}
	for i := range n {
		if i < len(all) {
			list = append(list, all[i])
		} else {
			list = append(list, quick[i%len(quick)])
		}
	}
	return list
}

// round is what one round of a package has shown, as it is kept for -resume.
type round struct {
	Package, Run string
	Number       int
	Combination  combination
	Seconds      float64
	Ran          map[string]float64 // test → seconds
	Failed       map[string]string  // test → what it said
}

// stress runs tests over and over, and prints how often each failed, with an example. It reports
// whether none did.
func stress(ctx context.Context, out io.Writer, o stressOptions) (ok bool, err error) {
	all := combinations(o.only)
	if len(all) == 0 || o.n < 1 {
		return false, fmt.Errorf("stress: no combination is named %q, or n is %d", o.only, o.n)
	}
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return false, err
	}
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return false, err
	}
	done, err := o.kept(out)
	if err != nil {
		return false, err
	}
	var shown []round
	for _, pkg := range strings.Split(o.packages, ",") {
		p, err := o.build(ctx, pkg, all)
		if err != nil {
			return false, err
		}
		seen := map[string]float64{}
		for i, c := range rounds(all, o.n) {
			r, was := done[roundKey{pkg, o.run, i, c}]
			if !was {
				if r, err = o.round(ctx, p, i, c, seen); err != nil {
					return false, err
				}
				if err := o.keep(r); err != nil {
					return false, err
				}
				fmt.Fprintf(out, "%s %s round %d of %d, %s: %d tests, %d failed, %.0f s\n",
					time.Now().Format(time.TimeOnly), pkg, i+1, o.n, c, len(r.Ran), len(r.Failed), r.Seconds)
			}
			if i == 0 {
				maps.Copy(seen, r.Ran)
			}
			shown = append(shown, r)
		}
	}
	return o.table(out, shown), nil
}

// program is the tests of a package, built.
type program struct {
	pkg, dir   string
	path, race string
	tests      []string
}

// build makes the programs, with the detector and without, as far as they are needed.
func (o stressOptions) build(ctx context.Context, pkg string, all []combination) (p program, err error) {
	dir, err := output(ctx, "", goCommand(), "list", "-f", "{{.Dir}}", pkg)
	if err != nil {
		return p, err
	}
	p = program{pkg: pkg, dir: strings.TrimSpace(dir)}
	name := filepath.Join(o.dir, strings.Trim(regexp.MustCompile(`\W+`).ReplaceAllString(pkg, "-"), "-"))
	p.path, p.race = name+".test", name+".race.test"
	for _, c := range []struct {
		path string
		race bool
	}{{p.path, false}, {p.race, true}} {
		if c.race && !slices.ContainsFunc(all, func(c combination) bool { return c.Race }) {
			continue
		}
		if _, err := output(ctx, "", goCommand(), "test", "-c", fmt.Sprintf("-race=%t", c.race), "-o", c.path, pkg); err != nil {
			return p, err
		}
	}
	list, err := output(ctx, p.dir, p.path, "-test.list", topLevel(o.run))
	if err != nil {
		return p, err
	}
	for name := range strings.FieldsSeq(list) {
		if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Example") {
			p.tests = append(p.tests, name)
		}
	}
	if len(p.tests) == 0 {
		return p, fmt.Errorf("stress: %s has no test that matches %q", pkg, o.run)
	}
	return p, nil
}

// topLevel is what of an expression for -test.run is about top-level tests: of TestA/b|TestC it is
// TestA|TestC.
func topLevel(run string) string {
	var top strings.Builder
	depth, below := 0, false
	for i := 0; i < len(run); i++ {
		switch c := run[i]; {
		case c == '\\' && i+1 < len(run):
			if !below {
				top.WriteString(run[i : i+2])
			}
			i++
			continue
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			depth--
		case c == '/' && depth == 0:
			below = true
		case c == '|' && depth == 0:
			below = false
		}
		if !below {
			top.WriteByte(run[i])
		}
	}
	return top.String()
}

// longTest is from where on a test is run o.long times only.
const longTest = 10 // seconds

// round runs the tests of a package once, in one process; seen says how long each took in the
// first round.
func (o stressOptions) round(ctx context.Context, p program, number int, c combination, seen map[string]float64) (r round, err error) {
	r = round{Package: p.pkg, Run: o.run, Number: number, Combination: c, Ran: map[string]float64{}, Failed: map[string]string{}}
	program, args := p.path, []string{"-test.v=test2json", "-test.timeout=" + o.timeout.String(), "-test.run=" + o.run, "-test.parallel=6"}
	if c.Race {
		program, args = p.race, append(args, "-test.short")
	}
	if number >= o.long && o.n > o.long && len(p.tests) > 1 {
		var skip []string
		for name, seconds := range seen {
			if seconds > longTest && !strings.Contains(name, "/") {
				skip = append(skip, "^"+name+"$")
			}
		}
		if slices.Sort(skip); len(skip) > 0 {
			args = append(args, "-test.skip="+strings.Join(skip, "|"))
		}
	}
	if c.Busy {
		end, err := spin(o.busy)
		if err != nil {
			return r, err
		}
		defer end()
	}
	began := time.Now()
	b, said, err := events(ctx, p, program, args, c)
	if err != nil {
		return r, err
	}
	r.Seconds = time.Since(began).Seconds()
	there, below := false, topLevel(o.run) != o.run // has to be there
	for _, t := range b.order {
		last := t.last()
		there = there || t.name != "" && (!below || last.outcome != passed || strings.Contains(t.name, "/"))
		if t.name != "" && last.outcome != skipped {
			r.Ran[t.name] = last.seconds
		}
		s := step{book: b}
		switch {
		case last.outcome == passed || last.outcome == skipped:
		case t.name == "" && last.beside:
			r.Failed["(beside its tests)"] = strings.Join(append(first(last), said), "\n")
		case t.name != "" && !s.failedBelow(t):
			r.Failed[t.name] = strings.Join(first(last), "\n")
		}
	}
	if !there {
		return r, fmt.Errorf("stress: %s has no test that matches %q, or ran none in %s: %s", p.pkg, o.run, c, said)
	}
	return r, nil
}

// events runs a program of tests, which ends with ctx. What it says test2json makes events of.
func events(ctx context.Context, p program, path string, args []string, c combination) (b *book, said string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tests, reader := exec.CommandContext(ctx, path, args...), exec.CommandContext(ctx, goCommand(), "tool", "test2json", "-t", "-p", p.pkg)
	tests.Dir = p.dir
	tests.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", c.Procs), "XXLJOB_REQUIRE_POSTGRES=1")
	from, to, err := os.Pipe()
	if err != nil {
		return nil, "", err
	}
	defer from.Close()
	defer to.Close()
	var errs bytes.Buffer
	tests.Stdout, tests.Stderr, reader.Stdin, reader.Stderr = to, to, from, &errs
	pipe, err := reader.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := reader.Start(); err != nil {
		return nil, "", err
	}
	if err := tests.Start(); err != nil {
		cancel()
		return nil, "", errors.Join(err, reader.Wait())
	}
	to.Close()
	b = newBook()
	readErr := b.read(pipe, unread)
	ended := tests.Wait()
	if err := errors.Join(ctx.Err(), readErr, reader.Wait()); err != nil {
		return nil, "", err
	}
	b.close()
	if last := b.of(p.pkg, "").last(); ended != nil && last.outcome == passed { // by its TestMain
		last.outcome, last.beside = failed, true
		last.said(ended.Error())
	}
	return b, errs.String(), nil
}

// spin starts busy processes. They end when their input does, which ends with this process too,
// however that does.
func spin(n int) (end func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var all []func()
	end = func() {
		for _, end := range all {
			end()
		}
	}
	for range n {
		cmd := exec.Command(self, "spin")
		in, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			end()
			return nil, err
		}
		all = append(all, func() { in.Close(); cmd.Wait() })
	}
	return end, nil
}

type roundKey struct {
	pkg, run string
	number   int
	in       combination
}

func (o stressOptions) file() string { return filepath.Join(o.dir, "rounds.json") }

// kept are the rounds of a run that was ended; without -resume there are none, and those are put
// aside.
func (o stressOptions) kept(out io.Writer) (map[roundKey]round, error) {
	if !o.resume {
		before := filepath.Join(o.dir, "rounds.before.json")
		if err := os.Rename(o.file(), before); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		fmt.Fprintf(out, "the rounds of the last run are now in %s: whoever wants to go on with them gives them the name %s again, and -resume (RESUME=1)\n", before, filepath.Base(o.file()))
		return nil, nil
	}
	text, err := os.ReadFile(o.file())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all := map[roundKey]round{}
	for line := range bytes.Lines(text) {
		var r round
		if json.Unmarshal(line, &r) == nil { // the last line may be half of one
			all[roundKey{r.Package, r.Run, r.Number, r.Combination}] = r
		}
	}
	return all, nil
}

func (o stressOptions) keep(r round) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(o.file(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	return errors.Join(err, file.Close())
}

// table prints what all rounds have shown.
func (o stressOptions) table(out io.Writer, all []round) (ok bool) {
	type fall struct{ pkg, test, combination string }
	ran, fell, example := map[fall]int{}, map[fall]int{}, map[fall]string{}
	byCombination := map[string][3]int{} // rounds, tests, failures
	for _, r := range all {
		c := byCombination[r.Combination.String()]
		byCombination[r.Combination.String()] = [3]int{c[0] + 1, c[1] + len(r.Ran), c[2] + len(r.Failed)}
		for name := range r.Ran {
			ran[fall{r.Package, name, r.Combination.String()}]++
		}
		for name, text := range r.Failed {
			key := fall{r.Package, name, r.Combination.String()}
			fell[key]++
			example[key] = cmp.Or(example[key], text)
		}
	}
	fmt.Fprintf(out, "\n%-22s %7s %9s %7s\n", "combination", "rounds", "tests", "failed")
	for _, name := range slices.Sorted(maps.Keys(byCombination)) {
		c := byCombination[name]
		fmt.Fprintf(out, "%-22s %7d %9d %7d\n", name, c[0], c[1], c[2])
	}
	keys := slices.SortedFunc(maps.Keys(fell), func(a, b fall) int {
		return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.test, b.test), cmp.Compare(a.combination, b.combination))
	})
	for _, key := range keys {
		fmt.Fprintf(out, "\n%s %s in %s: failed %d of %d\n    %s\n", key.pkg, key.test, key.combination, fell[key], max(ran[key], fell[key]), strings.ReplaceAll(example[key], "\n", "\n    "))
	}
	fmt.Fprintf(out, "\n%d rounds, %d tests fell\n", len(all), len(keys))
	return len(keys) == 0
}

// output runs a command and returns what it printed.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, errs.String())
	}
	return string(out), nil
}
