// Package fleettest runs a PostgreSQL server for tests, as ordinary processes from the system's package.
package fleettest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ralph-pool/ralph/internal/proc"
)

// required is the variable that turns a missing PostgreSQL from a skip into a failure.
const required = "RALPH_TEST_POSTGRES"

// Server is a PostgreSQL server that listens only on a socket in its folder.
type Server struct {
	dir, bin string
	as       []string // prefix of commands that run as another user, because PostgreSQL refuses to run as root
	n        atomic.Int64
}

// New starts a server in a new folder. end stops it and removes the folder; the death of this process does the same. If
// PostgreSQL is not installed, New returns nil, or fails if the variable RALPH_TEST_POSTGRES is set.
func New() (s *Server, end func(), err error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		if os.Getenv(required) != "" {
			return nil, nil, errors.New("PostgreSQL is not installed: apt-get install postgresql")
		}
		return nil, func() {}, nil
	}
	slices.Sort(found)
	dir, err := os.MkdirTemp("", "ralph-pg-") // the path of a socket must be short
	if err != nil {
		return nil, nil, err
	}
	s = &Server{dir: dir, bin: filepath.Dir(found[len(found)-1])}
	if os.Geteuid() == 0 {
		err = s.giveAway()
	}
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	end = s.watch()
	if err = s.run(context.Background(), "initdb", "-D", s.data(), "-A", "trust", "-U", "postgres", "--no-sync"); err == nil {
		err = s.Start(context.Background())
	}
	if err != nil {
		end()
		return nil, nil, err
	}
	return s, end, nil
}

// watch starts a process that stops the server and removes its folder when its input ends: when end is called or this
// process dies.
func (s *Server) watch() (end func()) {
	r, w := io.Pipe()
	argv := []string{"sh", "-c", `cat; "$@"; rm -rf "$PWD"`, "sh"}
	argv = append(append(argv, s.as...), filepath.Join(s.bin, "pg_ctl"), "-D", s.data(), "-w", "-t", "60", "-m", "immediate", "stop")
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = proc.Run(context.Background(), proc.Spec{Argv: argv, Dir: s.dir, Env: []string{"PATH=/usr/bin:/bin"}, Stdin: r})
	}()
	return func() {
		_ = w.Close()
		<-over
	}
}

func (s *Server) giveAway() error {
	u, err := user.Lookup("postgres")
	if err != nil {
		return err
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	s.as = []string{"setpriv", "--reuid", u.Uid, "--regid", u.Gid, "--clear-groups", "--"}
	return os.Chown(s.dir, uid, gid)
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Start starts the server and returns when it answers.
func (s *Server) Start(ctx context.Context) error {
	options := "-c listen_addresses= -k " + s.dir + " -c max_connections=200 -c fsync=off -c full_page_writes=off -c synchronous_commit=off"
	return s.run(ctx, "pg_ctl", "-D", s.data(), "-l", filepath.Join(s.dir, "log"), "-w", "-t", "60", "-o", options, "start")
}

// Stop ends the server like a crash: connections are cut.
func (s *Server) Stop(ctx context.Context) error {
	return s.run(ctx, "pg_ctl", "-D", s.data(), "-w", "-t", "60", "-m", "immediate", "stop")
}

// Kill kills all processes of the server with SIGKILL.
func (s *Server) Kill() error {
	list, err := s.processes()
	for _, p := range list {
		err = errors.Join(err, syscall.Kill(p.pid, syscall.SIGKILL))
	}
	return err
}

// CPU returns the CPU time of the server's processes, including ended ones.
func (s *Server) CPU() (time.Duration, error) {
	list, err := s.processes()
	ticks := 0
	for _, p := range list {
		for _, field := range p.stat[11:15] { // user and system time, of the process and of its ended children
			n, _ := strconv.Atoi(field)
			ticks += n
		}
	}
	return time.Duration(ticks) * (time.Second / 100), err
}

// process is a process of the server, with the fields of /proc/PID/stat from the third (state) on.
type process struct {
	pid  int
	stat []string
}

// processes returns the server's first process and its children.
func (s *Server) processes() (out []process, err error) {
	text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	list, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range list {
		line, _ := os.ReadFile(path)
		stat := strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:]))
		name := filepath.Base(filepath.Dir(path))
		if pid, err := strconv.Atoi(name); err == nil && len(stat) > 15 && (name == first || stat[1] == first) {
			out = append(out, process{pid, stat})
		}
	}
	return out, nil
}

func (s *Server) run(ctx context.Context, program string, args ...string) error {
	var out bytes.Buffer
	exit, err := proc.Run(ctx, proc.Spec{
		Argv:   append(slices.Clone(s.as), append([]string{filepath.Join(s.bin, program)}, args...)...),
		Dir:    s.dir,
		Env:    []string{"LC_ALL=C", "PATH=/usr/bin:/bin"},
		Stdout: &out,
		Stderr: &out,
	})
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("%s: status %d: %s", program, exit.Code, &out)
	}
	return err
}

// URL returns the address of a database.
func (s *Server) URL(database string) string {
	return "postgres:///" + database + "?user=postgres&host=" + s.dir
}

// Through returns the address of a database through another folder with the server's socket.
func (s *Server) Through(dir, address string) string { return strings.ReplaceAll(address, s.dir, dir) }

// Folder returns the folder of the server's socket.
func (s *Server) Folder() string { return s.dir }

// Pooler starts a PgBouncer for the server, in the given pool mode, and returns the folder of its socket. It ends with the
// test.
func (s *Server) Pooler(t testing.TB, mode string) (dir string) {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if os.Getenv(required) != "" {
			t.Fatal(err)
		}
		t.Skip("PgBouncer is not installed")
	}
	dir = filepath.Join(s.dir, mode)
	config := fmt.Sprintf("[databases]\n* = user=postgres host=%s\n[pgbouncer]\nlisten_port "+
		"= 5432\nunix_socket_dir = %s\nauth_type = any\npool_mode = %s\n", s.dir, dir, mode)
	if err := os.WriteFile(dir+".ini", []byte(config), 0o644); err != nil { //nolint:gosec // another user reads it
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = proc.Run(t.Context(), proc.Spec{
			Argv: append(slices.Clone(s.as), "sh", "-c", `mkdir "$1" && exec "$0" "$1.ini"`, program, dir),
			Dir:  s.dir,
			Env:  []string{"PATH=/usr/bin:/bin"},
		})
	}()
	t.Cleanup(func() { <-ended })
	for {
		c, err := new(net.Dialer).DialContext(t.Context(), "unix", filepath.Join(dir, ".s.PGSQL.5432"))
		if err == nil {
			_ = c.Close()
			return dir
		}
		select {
		case <-ended:
			t.Fatal("PgBouncer has not started")
		case <-time.After(10 * time.Millisecond): // no event tells when it listens
		}
	}
}

// Database makes an empty database and returns its address.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	if s == nil {
		t.Skip("PostgreSQL is not installed")
	}
	c, err := pgx.Connect(t.Context(), s.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	name := fmt.Sprintf("test%d", s.n.Add(1))
	if _, err := c.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return s.URL(name)
}
