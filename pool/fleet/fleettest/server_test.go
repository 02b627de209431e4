package fleettest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// owner is set in a process that starts a server and waits.
const owner = "FLEETTEST_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(owner) == "" {
		os.Exit(m.Run())
	}
	s, _, err := New()
	if err != nil || s == nil {
		fmt.Fprintln(os.Stderr, "no server:", err)
		os.Exit(1)
	}
	fmt.Println(s.URL("postgres"))
	select {}
}

// A server ends if the process that started it is killed, for example by a test's time limit.
func TestServerEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	s, end, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if s == nil {
		t.Skip("PostgreSQL is not installed")
	}
	end()
	if _, err := os.Stat(s.Folder()); !os.IsNotExist(err) {
		t.Errorf("end leaves the folder: %v", err)
	}
	p := exec.CommandContext(t.Context(), os.Args[0])
	p.Env, p.Stderr = append(os.Environ(), owner+"=1"), os.Stderr
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	where, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	c, err := pgx.Connect(t.Context(), strings.TrimSpace(where))
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Process.Kill()
	_ = p.Wait()
	if _, err := c.Exec(t.Context(), "SELECT pg_sleep(60)"); err == nil {
		t.Error("the server has survived its process")
	}
}
