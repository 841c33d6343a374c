package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// ErrMissing says that a program is not installed. The error that wraps it says
// which, and how to install it.
var ErrMissing = errors.New("not installed")

// oldest is the first major version of Postgres that is supported.
const oldest = 13

// postgresPlaces returns the directories in which distributions keep the
// programs of Postgres. install.sh looks at the same ones.
func postgresPlaces() []string {
	return []string{
		"/usr/lib/postgresql/*/bin",                          // Debian, Ubuntu
		"/usr/pgsql-*/bin",                                   // rpm of postgresql.org
		"/usr/lib/postgresql*/bin",                           // SUSE
		"/usr/libexec/postgresql*",                           // Alpine
		"/usr/local/pgsql/bin",                               // from source
		"/opt/homebrew/opt/postgresql*/bin",                  // Homebrew
		"/usr/local/opt/postgresql*/bin",                     // Homebrew on Intel
		"/Applications/Postgres.app/Contents/Versions/*/bin", // Postgres.app
		"/usr/local/bin",
		"/usr/bin",
	}
}

// bouncerPlaces returns the directories in which pgbouncer may be, beside PATH.
func bouncerPlaces() []string {
	return []string{"/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin", "/opt/homebrew/opt/pgbouncer/bin"}
}

// Find returns the directory with the programs of Postgres: the one that
// XXLJOB_TEST_POSTGRES_BIN names, else the one in PATH, else that of the newest
// version in the usual places. It returns ErrMissing where there is none.
func Find() (string, error) { return find(postgresPlaces()) }

func find(places []string) (string, error) {
	if dir := os.Getenv("XXLJOB_TEST_POSTGRES_BIN"); dir != "" {
		if version(dir) == 0 {
			return "", fmt.Errorf("pgtest: no Postgres in XXLJOB_TEST_POSTGRES_BIN=%s", dir)
		}
		return dir, nil
	}
	if runtime.GOOS == "windows" {
		return "", fmt.Errorf("pgtest: Postgres is %w: name one in XXLJOB_TEST_DATABASE_URL", ErrMissing)
	}
	if name, err := exec.LookPath("initdb"); err == nil {
		// A link leads to where the other programs are.
		if name, err = filepath.EvalSymlinks(name); err == nil && version(filepath.Dir(name)) >= oldest {
			return filepath.Dir(name), nil
		}
	}
	best, newest := "", 0
	for _, pattern := range places {
		dirs, _ := filepath.Glob(pattern) // the patterns are well formed
		for _, dir := range dirs {
			if v := version(dir); v > newest {
				best, newest = dir, v
			}
		}
	}
	if newest < oldest {
		return "", fmt.Errorf("pgtest: Postgres %d or later is %w: run `%s`, or name one in XXLJOB_TEST_DATABASE_URL", oldest, ErrMissing, howTo("postgresql"))
	}
	return best, nil
}

// findBouncer returns the path of pgbouncer, or ErrMissing.
func findBouncer(places []string) (string, error) {
	if name, err := exec.LookPath("pgbouncer"); err == nil {
		return name, nil
	}
	for _, dir := range places {
		if name := filepath.Join(dir, "pgbouncer"); isProgram(name) {
			return name, nil
		}
	}
	return "", fmt.Errorf("pgtest: pgbouncer is %w: run `%s`", ErrMissing, howTo("pgbouncer"))
}

// version returns the major version of the server in a directory, 0 where there
// is none.
func version(dir string) int {
	if !isProgram(filepath.Join(dir, "initdb")) || !isProgram(filepath.Join(dir, "postgres")) {
		return 0
	}
	out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return 0
	}
	// "postgres (PostgreSQL) 17.2 (Debian 17.2-1)", or 18beta1
	_, rest, _ := strings.Cut(string(out), "(PostgreSQL) ")
	v := 0
	fmt.Sscanf(rest, "%d", &v) // 0 if it is no number
	return v
}

func isProgram(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// howTo returns the command that installs a package with what this system has.
func howTo(name string) string {
	managers := [][2]string{{"apt-get", "apt-get install -y "}, {"dnf", "dnf install -y "}, {"apk", "apk add "}, {"brew", "brew install "}}
	i := slices.IndexFunc(managers, func(m [2]string) bool {
		_, err := exec.LookPath(m[0])
		return err == nil
	})
	if i < 0 {
		return "install " + name
	}
	servers := map[string]string{"dnf": "postgresql-server postgresql", "brew": "postgresql@17"}
	if server, ok := servers[managers[i][0]]; ok && name == "postgresql" {
		name = server
	}
	return managers[i][1] + name
}
