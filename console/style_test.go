package console_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
)

// TestStylesheet: each rule is in one of the layers, which are in order; there are two breakpoints;
// no selector is there twice in the same place; and no sign is a character that a font may lack.
func TestStylesheet(t *testing.T) {
	css := regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(string(must1(os.ReadFile("asset/console.css"))), "")
	layers := []string{"base", "layout", "components", "pages", "print"}
	if !strings.Contains(css, "@layer "+strings.Join(layers, ", ")+";") {
		t.Error("the order of the layers is not said")
	}
	var found []string
	for _, m := range regexp.MustCompile(`(?m)^@layer (\w+) \{`).FindAllStringSubmatch(css, -1) {
		found = append(found, m[1])
	}
	if !slices.Equal(found, layers) {
		t.Errorf("layers %q, want %q", found, layers)
	}
	for _, line := range regexp.MustCompile(`(?m)^[^\s@}].*`).FindAllString(css, -1) {
		t.Errorf("outside of a layer: %s", line)
	}
	for _, m := range regexp.MustCompile(`@media \((?:min|max)-width: [^)]*\)`).FindAllString(css, -1) {
		m = strings.TrimPrefix(m, "@media ")
		if !slices.Contains([]string{"(min-width: 1200px)", "(max-width: 1199px)", "(max-width: 639px)"}, m) {
			t.Errorf("%s is none of the two breakpoints", m)
		}
	}
	for _, m := range regexp.MustCompile(`@container \([^)]*\)`).FindAllString(css, -1) {
		if !slices.Contains([]string{"(max-width: 1139px)", "(max-width: 899px)", "(max-width: 759px)"}, strings.TrimPrefix(m, "@container ")) {
			t.Errorf("%s is none of the widths at which a list leaves something out", m)
		}
	}
	seen, at := map[string]bool{}, ""
	for line := range strings.Lines(css) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "@"):
			at += line
		case strings.Contains(line, "{"):
			selector, _, _ := strings.Cut(line, "{")
			if seen[at+selector] {
				t.Errorf("%s is there twice", selector)
			}
			seen[at+selector] = true
		}
	}
	for _, m := range regexp.MustCompile(`content: "([^"]*)"`).FindAllStringSubmatch(css, -1) {
		if strings.ContainsFunc(m[1], func(r rune) bool { return r >= 0x2190 }) {
			t.Errorf("%q is a sign of a font", m[1])
		}
	}
}

// TestSigns: each sign that a template or a script names is a symbol of the sprite, each state has one,
// and no template writes one as a character.
func TestSigns(t *testing.T) {
	sprite := string(must1(os.ReadFile("template/signs.html")))
	var wanted []string
	for state := xxljob.StatePlanned; state <= xxljob.StateSnoozed; state++ {
		wanted = append(wanted, strings.ReplaceAll(state.String(), " ", "_"))
	}
	wanted = append(wanted, "on", "off", "broken", "jobs", "runs", "changes")
	for _, dir := range []string{"template", "asset"} {
		for _, f := range must1(os.ReadDir(dir)) {
			if f.IsDir() {
				continue
			}
			text := string(must1(os.ReadFile(dir + "/" + f.Name())))
			for _, m := range regexp.MustCompile(`template "sign" "(\w+)"|href="#s-(\w+)"`).FindAllStringSubmatch(text, -1) {
				wanted = append(wanted, m[1]+m[2])
			}
			if m := regexp.MustCompile(`signs = \{(.*)\}`).FindStringSubmatch(text); m != nil {
				for _, one := range regexp.MustCompile(`"(\w+)"`).FindAllStringSubmatch(m[1], -1) {
					wanted = append(wanted, one[1])
				}
			}
			if at := strings.IndexAny(text, "○●◌◐◷✓✗⧖■⊘⊖⤼⚠▾⋯"); at >= 0 {
				t.Errorf("%s has a sign that is a character: %.20s", f.Name(), text[at:])
			}
		}
	}
	for _, name := range wanted {
		if !strings.Contains(sprite, `<symbol id="s-`+name+`"`) {
			t.Errorf("there is no sign %s", name)
		}
	}
	if n := strings.Count(sprite, "<symbol "); n < 20 {
		t.Errorf("the sprite has %d signs", n)
	}
}

// TestTablesAreOne: the tables of lists, of what is asked about several and of conflicts are made by one
// template of one table of columns. The others have figures alone, whose lines are not of one kind.
func TestTablesAreOne(t *testing.T) {
	heads := map[string]int{"table.html": 1, "job.html": 1, "overview.html": 1} // the figures of a job, those of the chart
	for _, f := range must1(os.ReadDir("template")) {
		if n := strings.Count(string(must1(os.ReadFile("template/"+f.Name()))), "<thead"); n != heads[f.Name()] {
			t.Errorf("%s has %d tables of its own, want %d", f.Name(), n, heads[f.Name()])
		}
	}
}

// TestOneScriptRefreshes: what is on a page is asked for anew by live.js alone; the end of a log asks it
// whether it may.
func TestOneScriptRefreshes(t *testing.T) {
	for _, f := range must1(os.ReadDir("asset")) {
		if f.IsDir() || !strings.HasSuffix(f.Name(), ".js") || f.Name() == "live.js" {
			continue
		}
		text := string(must1(os.ReadFile("asset/" + f.Name())))
		for _, m := range regexp.MustCompile(`hxTrigger|location\.reload|data-again|visibilitychange|dataset\.live\b`).FindAllString(text, -1) {
			t.Errorf("%s has %s", f.Name(), m)
		}
		if strings.Contains(text, "dataset.follow") && !strings.Contains(text, `new Event("wanted"`) {
			t.Errorf("%s follows something without asking", f.Name())
		}
	}
}

// TestCellsStandUnderTheirHeadings: in each table, with each column that may be chosen alone and with
// all, each row has a cell for each heading, which is of the same class.
func TestCellsStandUnderTheirHeadings(t *testing.T) { inMemory(t, testCellsStandUnderTheirHeadings) }

func testCellsStandUnderTheirHeadings(t *testing.T) {
	x := newSite(t)
	b := x.admin()
	j := x.job("orders", "nightly")
	r := x.run(j)
	chosen := regexp.MustCompile(`name="column" value="(\w+)"`)
	for _, list := range []string{"jobs", "runs", "changes"} {
		var all []string
		for _, m := range chosen.FindAllStringSubmatch(b.get(list).is(200).body, -1) {
			all = append(all, m[1])
		}
		if len(all) < 3 {
			t.Errorf("%s: one may choose %q", list, all)
		}
		for _, one := range append(slices.Collect(slices.Chunk(all, 1)), all, nil) {
			b.post("look", map[string][]string{"list": {list}, "column": one, "next": {list}}).is(200)
			b.cellsFit()
		}
	}
	b.get("jobs/" + itoa(j.ID)).is(200).cellsFit()
	b.get("runs/" + itoa(r.ID)).is(200).cellsFit()
}

// cellsFit checks each table of the page that has a head.
func (b *browser) cellsFit() {
	b.Helper()
	name := regexp.MustCompile(`class="(c-\w+)`)
	for _, table := range regexp.MustCompile(`(?s)<table.*?</table>`).FindAllString(b.body, -1) {
		head, body, _ := strings.Cut(table, "</thead>")
		var names, classes []string
		for _, th := range regexp.MustCompile(`(?s)<th[ >].*?</th>`).FindAllString(head, -1) {
			names = append(names, strings.TrimSpace(tags.ReplaceAllString(th, "")))
			classes = append(classes, name.FindString(th))
		}
		for _, row := range regexp.MustCompile(`(?s)<tr.*?</tr>`).FindAllString(body, -1) {
			if strings.Contains(row, `class="day"`) {
				continue
			}
			cells := regexp.MustCompile(`<td[^>]*>`).FindAllString(row, -1)
			if len(cells) != len(names) {
				b.Errorf("%s: %d cells under %q: %s", b.at, len(cells), names, row)
				continue
			}
			for i, cell := range cells {
				if name.FindString(cell) != classes[i] {
					b.Errorf("%s: %s is under %q", b.at, cell, names[i])
				}
			}
		}
	}
}
