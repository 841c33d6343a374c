//go:build unix

package chaos

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMissedRuns(t *testing.T) {
	dir := t.TempDir()
	write := func(file, text string) {
		t.Helper()
		f, err := os.OpenFile(filepath.Join(dir, file), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
			_ = f.Close() // the write has been checked
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	line := func(run string) string { return "level=WARN msg=\"" + missedLine + "\" run=" + run + "\n" }
	write("n1.log", "level=INFO msg=other\n"+line("1"))
	first := logSizes(dir)
	write("n1.log", line("2")+line("3"))
	write("n2.log", line("4")) // a node that came later
	second := logSizes(dir)
	write("n2.log", line("5"))
	for _, c := range []struct {
		from, until map[string]int64
		want        string
	}{{nil, first, "1"}, {first, second, "2 3 4"}, {second, nil, "5"}, {nil, nil, "1 2 3 4 5"}, {second, second, ""}} {
		lines, err := missedRuns(dir, c.from, c.until)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range lines {
			_, run, _ := strings.Cut(l, "run=")
			got = append(got, run)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("got %v, want %s", got, c.want)
		}
	}
}
