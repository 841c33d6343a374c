// Command benchcompare says whether a commit has made benchmarks slower: it builds the tests
// of the base commit and of the working tree, runs the chosen benchmarks of both in turns,
// and prints the ratio of what each pair has measured, with a 95 % interval.
//
//	go run ./internal/test/benchcompare -base COMMIT
//	go run ./internal/test/benchcompare -base COMMIT -console
//
// With -console it is pages of the console that are compared, of one store for both: BenchmarkConsole
// asks the one and the other in turns.
//
// It exits with 1 where a loss of more than -loss is certain by that interval, and with 2
// where it could not measure.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
)

// chosen are the benchmarks that docs/performance.md has figures of and that measure the whole
// path of a run.
var chosen = []bench{
	{pkg: ".", name: "BenchmarkEndToEnd", time: "300000x"},
	{pkg: ".", name: "BenchmarkLateness", time: "1x"},
	{pkg: ".", name: "BenchmarkHerd", time: "1x"},
	{pkg: "./internal/timering", was: ".", name: "BenchmarkRing", time: "1s"},
	{pkg: "./route", name: "BenchmarkHash$", time: "0.2s"},
	{pkg: "./internal/cron", name: "BenchmarkNext", time: "0.1s"},
	{pkg: "./wire", name: "Benchmark", time: "0.2s"},
}

// bench is a benchmark, or several, of a package, which was another one in trees that have not got it.
type bench struct{ pkg, was, name, time string }

// in is the folder of the package in a tree.
func (b bench) in(tree string) string {
	dir := filepath.Join(tree, b.pkg)
	if _, err := os.Stat(dir); b.was != "" && errors.Is(err, fs.ErrNotExist) {
		return filepath.Join(tree, b.was)
	}
	return dir
}

func main() {
	base := flag.String("base", "", "the `commit` to compare with")
	pairs := flag.Int("pairs", 10, "how often each benchmark is run, of both commits")
	only := flag.String("bench", "", "run only benchmarks whose name contains this, or ask only pages whose address does")
	pages := flag.Bool("console", false, "compare pages of the console")
	loss := flag.Float64("loss", 0.03, "the loss, as a part of one, from which on the comparison fails")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	lost, err := compare(ctx, os.Stdout, *base, *only, *pairs, *loss, *pages)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "benchcompare:", err)
		os.Exit(2)
	case lost:
		os.Exit(1)
	}
}

// compare runs everything and reports whether a loss is certain.
func compare(ctx context.Context, out io.Writer, base, only string, pairs int, loss float64, pages bool) (lost bool, err error) {
	if base == "" || pairs < 2 {
		return false, fmt.Errorf("want -base COMMIT, and two -pairs at least")
	}
	dir, err := os.MkdirTemp("", "benchcompare")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	tree := filepath.Join(dir, "base")
	if err := run(ctx, "", "git", "worktree", "add", "--detach", tree, base); err != nil {
		return false, err
	}
	defer func() { _ = run(context.WithoutCancel(ctx), "", "git", "worktree", "remove", "--force", tree) }()
	here, err := os.Getwd()
	if err != nil {
		return false, err
	}
	fmt.Fprintf(out, "base %s, %d pairs, %s, GOMAXPROCS %d; a ratio is new to base\n", base, pairs, runtime.Version(), runtime.GOMAXPROCS(0))
	if pages {
		return console(ctx, out, dir, tree, only, pairs, loss)
	}
	for _, b := range chosen {
		if !strings.Contains(b.name, only) {
			continue
		}
		was, is, err := b.measure(ctx, dir, tree, here, pairs)
		if err != nil {
			return lost, fmt.Errorf("%s of %s: %w", b.name, b.pkg, err)
		}
		for _, r := range ratios(was, is) {
			fmt.Fprintln(out, r)
			lost = lost || r.isLoss(loss)
		}
	}
	return lost, nil
}

// console has BenchmarkConsole of this tree ask its own console and that of the base.
func console(ctx context.Context, out io.Writer, dir, tree, only string, pairs int, loss float64) (lost bool, err error) {
	const pkg = "./store/postgres"
	bin := filepath.Join(dir, "base.test")
	if err := run(ctx, tree, "go", "test", "-c", "-o", bin, pkg); err != nil {
		return false, err
	}
	cmd := exec.CommandContext(ctx, "go", "test", pkg, "-run", "^$", "-bench", "^BenchmarkConsole$", "-benchtime", "1x", "-timeout", "60m")
	cmd.Env = append(os.Environ(), "XXLJOB_REQUIRE_POSTGRES=1", "XXLJOB_BENCH_BASE="+bin, "XXLJOB_BENCH_PAGES="+only, fmt.Sprint("XXLJOB_BENCH_CONSOLE=", pairs), fmt.Sprint("XXLJOB_BENCH_LOSS=", loss))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(out, &said), os.Stderr
	if err = cmd.Run(); err != nil && strings.Contains(said.String(), "LOST") {
		return true, nil
	}
	return false, err
}

// measure runs a benchmark of both trees in turns, the base first in every other pair.
func (b bench) measure(ctx context.Context, dir, base, here string, pairs int) (was, is []sample, err error) {
	trees := [2]string{base, here}
	var bins [2]string
	for i, tree := range trees {
		bins[i] = filepath.Join(dir, fmt.Sprintf("%d-%s.test", i, filepath.Base(b.pkg)))
		if err := run(ctx, b.in(tree), "go", "test", "-c", "-o", bins[i]); err != nil {
			return nil, nil, err
		}
	}
	got := [2][]sample{}
	for p := range pairs {
		for k := range trees {
			i := (p + k) % 2
			s, err := b.once(ctx, bins[i], b.in(trees[i]))
			if err != nil {
				return nil, nil, err
			}
			got[i] = append(got[i], s)
		}
	}
	return got[0], got[1], nil
}

// once runs the benchmark and reads what it prints.
func (b bench) once(ctx context.Context, bin, dir string) (sample, error) {
	cmd := exec.CommandContext(ctx, bin, "-test.run", "^$", "-test.bench", "^"+b.name, "-test.benchtime", b.time, "-test.timeout", "10m")
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out.Bytes())
	}
	s := parse(out.String())
	if len(s) == 0 {
		return nil, fmt.Errorf("nothing was measured:\n%s", out.Bytes())
	}
	s.addCPU((cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
	return s, nil
}

func run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
