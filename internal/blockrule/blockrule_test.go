package blockrule_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/internal/blockrule"
)

// TestEveryStrategyHasItsRow: a strategy that package block gets has to be thought of here, or its
// runs are treated as serial ones in silence.
func TestEveryStrategyHasItsRow(t *testing.T) {
	rows := map[string]blockrule.Rule{
		block.SerialExecution: {KeepsOrder: true, SentInOrder: true, Waits: true},
		block.DiscardLater:    {SentInOrder: true},
		block.CoverEarly:      {SentInOrder: true, Covers: true},
		block.Concurrent:      {SideBySide: true, Waits: true},
	}
	seen := map[blockrule.Rule]string{}
	for _, name := range block.Names() {
		want, has := rows[name]
		if !has {
			t.Errorf("%s has no row: give it one in Of and here, and follow the recipe in CONTRIBUTING.md", name)
		}
		got := blockrule.Of(name)
		if got != want {
			t.Errorf("Of(%s) = %+v, want %+v", name, got, want)
		}
		if other, same := seen[got]; same {
			t.Errorf("%s and %s mean the same: one of them has no row of its own in Of", name, other)
		}
		seen[got] = name
		busy := block.Decide(name, true)
		if got.Waits != (busy == block.Queue) || got.Covers != (busy == block.Cover) {
			t.Errorf("Of(%s) = %+v, and at a busy executor package block decides %q", name, got, busy)
		}
		if got.KeepsOrder && (!got.SentInOrder || got.SideBySide) || got.Covers && !got.SentInOrder {
			t.Errorf("Of(%s) = %+v contradicts itself", name, got)
		}
	}
	for _, unknown := range []string{"", "NO_SUCH_STRATEGY", "concurrent"} {
		if blockrule.Of(unknown) != rows[block.SerialExecution] {
			t.Errorf("Of(%q) = %+v, want what serial execution means", unknown, blockrule.Of(unknown))
		}
	}
}

// TestNobodyElseComparesNames: whoever decides by a strategy asks the table.
func TestNobodyElseComparesNames(t *testing.T) {
	compares := regexp.MustCompile(`[!=]=\s*\w+\.(SerialExecution|DiscardLater|CoverEarly|Concurrent)\b|\bcase\b.*\bblock\.(SerialExecution|DiscardLater|CoverEarly|Concurrent)\b|[!=]=\s*\w*\.?Block(Serial|DiscardLater|CoverEarly|Concurrent)\b`)
	root := filepath.Join("..", "..")
	files := 0
	for _, top := range []string{"console", "executor", "finding", "internal/compact", "internal/engine", "jobfile", "store"} {
		err := filepath.WalkDir(filepath.Join(root, filepath.FromSlash(top)), func(name string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "storetest") {
				return err
			}
			files++
			text, err := os.ReadFile(name)
			for i, line := range strings.Split(string(text), "\n") {
				if compares.MatchString(line) {
					t.Errorf("%s:%d compares a block strategy by its name: ask blockrule.Of\n%s", name, i+1, line)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 100 {
		t.Errorf("only %d files were read", files)
	}
}
