// Package modules has audit.sh, which make audit runs, and the tests of it.
package modules_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// program is what is audited: it calls path.Clean, and not path.Match.
var program = map[string]string{
	"main.go": "package main\n\nimport \"path\"\n\nfunc main() { println(path.Clean(\"/a/../b\")) }\n",
	"go.mod": `module example.com/program

go 1.26.0

require example.com/one v1.0.0

require (
	example.com/three v1.3.0 // indirect
	example.com/two/v2 v2.0.0
)
`,
}

// write makes a file for each entry.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// audit runs the script in a directory, with nothing to ask for later versions.
func audit(t *testing.T, dir, govulncheck string, args ...string) (out string, code int) {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		if runtime.GOOS != "windows" {
			t.Fatal(err)
		}
		t.Skipf("SKIPPED: Windows has no sh here: %v", err)
	}
	script, err := filepath.Abs("audit.sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(sh, append([]string{script}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local", "GOVULNCHECK="+govulncheck)
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v\n%s", err, text)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

func want(t *testing.T, out string, code, wantCode int, parts ...string) {
	t.Helper()
	if code != wantCode {
		t.Errorf("ended with %d, want %d:\n%s", code, wantCode, out)
	}
	for _, part := range parts {
		if !strings.Contains(out, part) {
			t.Errorf("does not say %q:\n%s", part, out)
		}
	}
}

// What was not looked for does not look as if nothing had been found.
func TestAuditWithoutACopy(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, program)
	write(t, dir, map[string]string{
		"empty/index/modules.json":  "[]",
		"empty/ID/.keep":            "",
		"half/index/modules.json":   `[{"path":"stdlib","vulns":[]}]`,
		"zipped/index/modules.json": "PK",
	})
	const notGiven, noCopy = "NOT LOOKED FOR: there is no copy", "is no copy of the vulnerability database"
	for _, c := range []struct {
		copy []string
		says string
	}{
		{nil, notGiven}, {[]string{""}, notGiven},
		{[]string{"/nowhere"}, noCopy}, {[]string{"empty"}, noCopy}, {[]string{"half"}, noCopy}, {[]string{"zipped"}, noCopy},
	} {
		out, code := audit(t, dir, "govulncheck-that-is-not-there", c.copy...)
		want(t, out, code, 2, c.says, "vulndb.zip", "make audit VULNDB=",
			"NOT KNOWN: whether there are later versions",
			"direct  example.com/one v1.0.0\ndirect  example.com/two/v2 v2.0.0\nindirect  example.com/three v1.3.0\n")
	}
	write(t, dir, map[string]string{"half/ID/.keep": ""})
	out, code := audit(t, dir, "govulncheck-that-is-not-there", "half")
	want(t, out, code, 2, "NOT LOOKED FOR: govulncheck failed")
}

// vulnerability is an entry of the database, about symbols of package path of the
// standard library.
type vulnerability struct{ id, symbol, fixed string }

// copyOf is a copy of the database with these entries.
func copyOf(t *testing.T, entries ...vulnerability) map[string]string {
	t.Helper()
	files := map[string]string{}
	put := func(name string, v any) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	const changed = "2026-01-02T03:04:05Z"
	type object = map[string]any
	module, index := []object{}, []object{}
	for _, e := range entries {
		events := []object{{"introduced": "0"}}
		if e.fixed != "" {
			events = append(events, object{"fixed": e.fixed})
		}
		module = append(module, object{"id": e.id, "modified": changed, "fixed": e.fixed})
		index = append(index, object{"id": e.id, "modified": changed, "aliases": []string{}})
		put("ID/"+e.id+".json", object{
			"schema_version": "1.3.1", "id": e.id, "modified": changed, "published": changed,
			"summary": e.symbol + " does harm", "details": e.symbol + " does harm.",
			"affected": []object{{
				"package":            object{"name": "stdlib", "ecosystem": "Go"},
				"ranges":             []object{{"type": "SEMVER", "events": events}},
				"ecosystem_specific": object{"imports": []object{{"path": "path", "symbols": []string{e.symbol}}}},
			}},
			"database_specific": object{"url": "https://example.com/" + e.id},
		})
	}
	put("index/db.json", object{"modified": changed})
	put("index/modules.json", []object{{"path": "stdlib", "vulns": module}})
	put("index/vulns.json", index)
	return files
}

// TestAudit is not for CI, which has no govulncheck.
func TestAudit(t *testing.T) {
	if os.Getenv("CI") == "true" {
		t.Skip("make audit is no part of CI")
	}
	makefile, err := os.ReadFile("../../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^GOVULNCHECK := (v[\d.]+)$`).FindSubmatch(makefile)
	if version == nil {
		t.Fatal("the Makefile names no version of govulncheck")
	}
	name := "bin/govulncheck-" + string(version[1])
	govulncheck, err := filepath.Abs("../../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(govulncheck); err != nil || runtime.GOOS == "windows" {
		t.Skipf("govulncheck is not there: make %s installs it", name)
	}
	called := vulnerability{"GO-2999-0001", "Clean", ""}
	notCalled := vulnerability{"GO-2999-0002", "Match", ""}
	mended := vulnerability{"GO-2999-0003", "Clean", "1.0.1"}

	dir := t.TempDir()
	write(t, dir, map[string]string{"main.go": program["main.go"], "go.mod": "module example.com/program\n\ngo 1.26.0\n"})
	look := func(files map[string]string) (string, int) {
		db := filepath.Join(t.TempDir(), "a copy")
		write(t, db, files)
		return audit(t, dir, govulncheck, db)
	}
	out, code := look(copyOf(t, called, notCalled, mended))
	want(t, out, code, 1, "last changed 2026-01-02T03:04:05Z", "GO-2999-0001", "path.Clean")
	if strings.Contains(out, mended.id) {
		t.Errorf("says what was mended long ago:\n%s", out)
	}
	out, code = look(copyOf(t, notCalled, mended))
	want(t, out, code, 0, "No vulnerabilities found", "== modules that are behind")

	lacking := copyOf(t, called)
	maps.DeleteFunc(lacking, func(name, _ string) bool { return strings.HasSuffix(name, called.id+".json") })
	lacking["ID/.keep"] = ""
	out, code = look(lacking)
	want(t, out, code, 2, "NOT LOOKED FOR: govulncheck failed")
}
