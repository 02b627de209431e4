package landlock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/landlock"
)

// acting is the first argument of this program inside a sandbox. The action follows.
const acting = "landlock-test-act"

// act performs one action and prints the result of each step: "ok" or the error.
func act(what string, args []string) int {
	say := func(name string, err error) {
		if err == nil {
			fmt.Println(name, "ok")
			return
		}
		fmt.Println(name, err)
	}
	switch what {
	case "fetch":
		say("fetch", fetch(args[0]))
	case "serve":
		for _, address := range args {
			say(address, serve(address))
		}
	case "reach":
		reach(say, args[0], args[1], args[2])
	case "touch":
		touch(say, args[0])
	case "meddle":
		meddle(say, args[0])
	case "share":
		say("share", share())
	default:
		return 2
	}
	return 0
}

// fetch gets a URL like a program that uses the proxy variables.
func fetch(url string) error {
	answer, err := http.Get(url)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	fmt.Print(answer.StatusCode, " ")
	_, err = io.Copy(os.Stdout, answer.Body)
	fmt.Println()
	return err
}

// serve starts a server and connects to it.
func serve(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	go func() { _ = (&http.Server{ReadTimeout: time.Minute}).Serve(l) }()
	client := http.Client{Transport: &http.Transport{Proxy: nil}}
	answer, err := client.Get("http://" + net.JoinHostPort("localhost", strconv.Itoa(l.Addr().(*net.TCPAddr).Port)))
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// reach tries all ways to reach a loopback server of the host, a unix socket, and an abstract one.
func reach(say func(string, error), tcp, path, abstract string) {
	dial := func(name, network, address string) {
		c, err := net.DialTimeout(network, address, time.Minute)
		if err == nil {
			_ = c.Close()
		}
		say(name, err)
	}
	dial("tcp", "tcp", tcp)
	dial("udp", "udp", "127.0.0.1:53")
	dial("elsewhere", "tcp", "192.0.2.1:15380")
	dial("unix", "unix", path)
	dial("abstract", "unix", abstract)
	open := func(name string, family, kind, protocol int) {
		fd, err := unix.Socket(family, kind, protocol)
		if err == nil {
			_ = unix.Close(fd)
		}
		say(name, err)
	}
	open("mptcp", unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)
	open("sctp", unix.AF_INET, unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP)
	open("raw", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)
	open("uevents", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	say("datagram pair", err)
	if err == nil {
		say("datagram", unix.Sendto(pair[0], []byte("x"), 0, &unix.SockaddrUnix{Name: path}))
	}
	_, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	say("stream pair", err)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	say("tcp socket", err)
	at, _ := net.ResolveTCPAddr("tcp", tcp)
	say("fast open", unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: at.Port, Addr: [4]byte{127, 0, 0, 1}}))
	say("listen everywhere", unix.Listen(fd, 1))
}

// touch tries all changes of a file that need no permission to open it.
func touch(say func(string, error), path string) {
	say("chmod", os.Chmod(path, 0o640))
	say("times", os.Chtimes(path, time.Unix(1, 0), time.Unix(1000000000, 500)))
	say("utimes", unix.Utimes(path, []unix.Timeval{{Sec: 1}, {Sec: 1000000000}}))
	say("chown", os.Lchown(path, os.Getuid(), os.Getgid()))
	say("xattr", unix.Setxattr(path, "user.planted", []byte("x"), 0))
	notify, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err == nil {
		_, err = unix.InotifyAddWatch(notify, path, unix.IN_ALL_EVENTS)
	}
	say("watch", err)
	say("link", os.Link(path, "stolen"))
	say("rename", os.Rename(path, path+".moved"))
	say("truncate", os.Truncate(path+".moved", 0))
	say("truncate before", os.Truncate(path, 0))
	_ = os.Symlink(path, "link")
	say("chmod through a link", os.Chmod("link", 0o777))
	fd, err := unix.Open(path, unix.O_PATH, 0)
	if err == nil {
		say("chmod through a descriptor", os.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0o777))
	}
}

// meddle tries to affect another process of the same user.
func meddle(say func(string, error), process string) {
	pid, _ := strconv.Atoi(process)
	say("signal", unix.Kill(pid, 0))
	say("limits", unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64}, nil))
	say("priority", unix.Setpriority(unix.PRIO_PROCESS, pid, 19))
	say("everybody's priority", unix.Setpriority(unix.PRIO_USER, 0, 19))
	for _, name := range []string{"environ", "mem", "maps", "cwd/..", "fd/0", "root/etc/passwd"} {
		_, err := os.ReadFile(filepath.Join("/proc", process, name))
		say(name, err)
	}
	_, _, errno := unix.Syscall(unix.SYS_SHMGET, 1, 4096, unix.IPC_CREAT|0o600)
	say("shared memory", orNil(errno))
	name := []byte("planted\x00")
	_, _, errno = unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(&name[0])), unix.O_CREAT|unix.O_RDWR, 0o600, 0, 0, 0)
	say("message queue", orNil(errno))
	fd, err := unix.MemfdCreate("held", 0)
	say("file in memory", err)
	_ = unix.Close(fd)
	_, _, errno = unix.Syscall(unix.SYS_MEMFD_SECRET, 0, 0, 0)
	say("secret file in memory", orNil(errno))
}

// share fills memory that children could share, and holds it until it is killed.
func share() error {
	const size = 256 << 20
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	for i := 0; i < size; i += os.Getpagesize() {
		b[i] = 1
	}
	for {
		_ = unix.Pause()
	}
}

func orNil(errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// inside runs an action of this program in a sandbox. It returns the results by step, and the whole output under "".
func inside(t *testing.T, spec sandboxes.Spec, what string, args ...string) map[string]string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if spec.Worktree == "" {
		spec.Worktree = t.TempDir()
	}
	spec.Run = "act-" + spec.Worktree
	spec.Mounts = append(spec.Mounts, sandboxes.Mount{Host: self, Inside: self, ReadOnly: true})
	box, err := landlock.New(landlock.Config{}).Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := box.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	var out, errs bytes.Buffer
	exit, err := box.Exec(t.Context(), sandboxes.Command{Argv: append([]string{self, acting, what}, args...), Stdout: &out, Stderr: &errs})
	if err != nil || !exit.OK() {
		t.Fatalf("%s: %+v, %v, %s%s", what, exit, err, &out, &errs)
	}
	said := make(map[string]string)
	for line := range strings.Lines(out.String()) {
		for _, result := range []string{" ok\n"} {
			if name, ok := strings.CutSuffix(line, result); ok {
				said[name] = "ok"
			}
		}
	}
	said[""] = out.String()
	return said
}

// only fails the test unless exactly these steps succeeded.
func only(t *testing.T, said map[string]string, want ...string) {
	t.Helper()
	good := map[string]bool{}
	for _, name := range want {
		good[name] = true
		if said[name] != "ok" {
			t.Errorf("%s: not possible", name)
		}
	}
	for name := range said {
		if name != "" && !good[name] {
			t.Errorf("%s: possible", name)
		}
	}
	if t.Failed() {
		t.Logf("inside said:\n%s", said[""])
	}
}

// Commands cannot access files outside as far as Landlock checks it. The escape suite covers what Landlock does not check.
func TestFilesOutsideKeepTheirContent(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(outside, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	only(t, inside(t, sandboxes.Spec{}, "touch", outside),
		"chmod", "times", "utimes", "chown", "watch", "chmod through a link", "chmod through a descriptor")
	if text, err := os.ReadFile(outside); err != nil || string(text) != "mine" {
		t.Errorf("it is %q, %v", text, err)
	}
}

func TestFilesInsideAreTheCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	only(t, inside(t, sandboxes.Spec{Worktree: dir}, "touch", path),
		"chmod", "times", "utimes", "chown", "watch", "link", "rename", "truncate")
	info, err := os.Stat(path + ".moved")
	if err != nil || info.Mode() != 0o640 || info.Size() != 0 {
		t.Errorf("it is %+v, %v", info, err)
	}
}

func TestNoOtherProcessIsTouched(t *testing.T) {
	t.Parallel()
	only(t, inside(t, sandboxes.Spec{}, "meddle", strconv.Itoa(os.Getpid())))
}

// TestSharedMemoryCounts: memory that could be shared counts for the limit, too.
func TestSharedMemoryCounts(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	box, err := landlock.New(landlock.Config{}).Open(t.Context(), sandboxes.Spec{
		Run: "share-" + dir, Worktree: dir, Limits: sandboxes.Limits{Memory: 128 << 20},
		Mounts: []sandboxes.Mount{{Host: self, Inside: self, ReadOnly: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	exit, err := box.Exec(ctx, sandboxes.Command{Argv: []string{self, acting, "share"}})
	if err != nil || exit.Signal != "SIGKILL" {
		t.Errorf("ended with %+v, %v, want to be killed", exit, err)
	}
	if err := box.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	if got := sandboxes.NoticesOf(box); len(got) != 1 || got[0] != sandboxes.MemoryNotice(1, 128<<20) {
		t.Errorf("notices: %q", got)
	}
}

func TestNoSocketLeadsOut(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "landlock-reach-") //nolint:usetesting // a test's own folder is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var listeners []net.Listener
	abstract := "@landlock-" + filepath.Base(dir)
	for _, at := range [][2]string{{"tcp4", "127.0.0.1:0"}, {"unix", filepath.Join(dir, "s")}, {"unix", abstract}} {
		l, err := new(net.ListenConfig).Listen(t.Context(), at[0], at[1])
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		listeners = append(listeners, l)
	}
	// Not even a socket in the worktree can be reached.
	said := inside(t, sandboxes.Spec{Worktree: dir}, "reach", listeners[0].Addr().String(), filepath.Join(dir, "s"), abstract)
	only(t, said, "stream pair", "tcp socket")
	for _, l := range listeners {
		_ = l.(interface{ SetDeadline(time.Time) error }).SetDeadline(time.Now())
		if _, err := l.Accept(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s was reached, %v", l.Addr(), err)
		}
	}
}

// TestNoServers: a rule that lets a command connect to its own server would allow that port on every host.
func TestNoServers(t *testing.T) {
	t.Parallel()
	only(t, inside(t, sandboxes.Spec{}, "serve", "127.0.0.1:0", "localhost:0", ":0", "192.0.2.1:0", "127.0.0.1:80"))
}

// TestALinkOpensNothing: a command gains no access by replacing a folder that has a rule of its own with a link.
func TestALinkOpensNothing(t *testing.T) {
	t.Parallel()
	tree, secret := t.TempDir(), t.TempDir()
	cache := filepath.Join(tree, "cache")
	if err := errors.Join(os.Mkdir(cache, 0o755), os.WriteFile(filepath.Join(secret, "file"), []byte("secret"), 0o644)); err != nil {
		t.Fatal(err)
	}
	box, err := landlock.New(landlock.Config{}).Open(t.Context(), sandboxes.Spec{
		Run: "link-" + tree, Worktree: tree, Mounts: []sandboxes.Mount{{Host: cache, Inside: cache}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := box.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	var out bytes.Buffer
	for _, script := range []string{`rmdir cache; ln -s "$1" cache`, `cat cache/file; echo x >cache/planted`} {
		if _, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", script, "sh", secret}, Stdout: &out}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(secret, "planted")); out.Len() > 0 || err == nil {
		t.Errorf("the link opened another folder: %s, %v", &out, err)
	}
}
