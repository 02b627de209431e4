package sbx_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// machine is the script of the first process of a simulated microVM. Its processes and mounts are separate, so that the
// scripts inside must do what they do in a real one. It ends by itself if nobody stops it.
const machine = `
mount --make-rprivate / && mount -t proc proc /proc && mount -t tmpfs tmpfs /run || exit
for shown; do mount --bind "$shown" "$shown" && mount -o remount,bind,ro "$shown" || exit; done
echo ready
exec >/dev/null 2>&1
sleep 1200 &
wait
`

// create starts a microVM with some files and folders shown read-only. Its file contains the PID of its first process.
func (s shim) create(name string, shown []string) error {
	if err := errors.Join(os.MkdirAll(s.path("boxes"), 0o755), os.MkdirAll(s.path("shown"), 0o755)); err != nil {
		return err
	}
	if err := os.WriteFile(s.path("shown", name), []byte(strings.Join(shown, "\n")), 0o644); err != nil {
		return err
	}
	f, err := os.OpenFile(s.path("boxes", name), os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Close(), s.boot(name)); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// boot starts a stopped microVM.
func (s shim) boot(name string) error {
	shown, err := os.ReadFile(s.path("shown", name))
	if err != nil {
		return err
	}
	cmd := exec.Command("sh", append([]string{"-c", machine, "sh"}, strings.FieldsFunc(string(shown), func(r rune) bool { return r == '\n' })...)...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	err = os.WriteFile(s.path("boxes", name), strconv.AppendInt(nil, int64(cmd.Process.Pid), 10), 0o644)
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		err = errors.Join(err, fmt.Errorf("the microVM does not start: %v", cmd.Wait()))
	}
	return err
}

// stop ends a microVM. All its processes die with the first one.
func (s shim) stop(name string) error {
	text, err := os.ReadFile(s.path("boxes", name))
	if err != nil {
		return fmt.Errorf("sandbox %s not found", name)
	}
	if len(text) == 0 { // it has ended, and the PID may be reused
		return nil
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		return err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		return err
	}
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if err == nil {
			return os.Truncate(s.path("boxes", name), 0)
		}
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// exec runs a command as sbx would: with the flags and exit status of "docker exec".
func (s shim) exec(args []string) (int, error) {
	whole := args
	root, privileged, interactive := false, false, false
	for strings.HasPrefix(args[0], "--") {
		switch args[0] {
		case "--user":
			root, args = true, args[1:]
		case "--privileged":
			privileged = true
		case "--interactive":
			interactive = true
		}
		args = args[1:]
	}
	pid, err := os.ReadFile(s.path("boxes", args[0]))
	if err != nil {
		return 0, fmt.Errorf("sandbox %s not found", args[0])
	}
	if len(pid) == 0 { // it has stopped
		if err := s.boot(args[0]); err != nil {
			return 0, err
		}
		return s.exec(whole)
	}
	enter := []string{"--target", string(pid), "--mount", "--pid"}
	if os.Getuid() != 0 {
		enter = append(enter, "--user", "--preserve-credentials")
	}
	enter = append(enter, "--", "setpriv")
	if _, err := os.Stat(s.path("strict")); err == nil && !privileged {
		enter = append(enter, "--bounding-set=-sys_admin")
	}
	if id, err := os.ReadFile(s.path("agent")); err == nil && !root {
		enter = append(enter, "--reuid", string(id), "--regid", string(id), "--groups", string(id))
	}
	enter = append(enter, "--")
	cmd := exec.Command("nsenter", append(enter, args[1:]...)...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/home/agent", "GIT_CONFIG_NOSYSTEM=1"}
	if root {
		cmd.Env[1] = "HOME=/root"
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if _, err := os.Stat(s.path("drop")); err == nil && interactive {
		return 1, s.drop(cmd)
	}
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if ws := exit.Sys().(syscall.WaitStatus); ws.Signaled() {
			return 128 + int(ws.Signal()), nil
		}
		return exit.ExitCode(), nil
	}
	return 0, err
}

// drop simulates a client that ends at the first line of output, while the command continues.
func (s shim) drop(cmd *exec.Cmd) error {
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = bufio.NewReader(out).ReadString('\n')
	}
	return errors.Join(err, errors.New("connection lost"))
}

// clean ends the microVMs that a test has left.
func (s shim) clean(t *testing.T) {
	boxes, err := os.ReadDir(s.path("boxes"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	for _, b := range boxes {
		if err := s.stop(b.Name()); err != nil {
			t.Errorf("end microVM %s: %v", b.Name(), err)
		}
	}
}
