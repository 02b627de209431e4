package serve

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/retry"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/web"
)

// systemdSocket sends the service's status to systemd. Without systemd it does nothing.
type systemdSocket struct {
	socket   string
	watchdog time.Duration // maximum time between heartbeats; 0: no watchdog
}

func newSystemdSocket(h compose.Host) systemdSocket {
	n := systemdSocket{socket: h.Getenv("NOTIFY_SOCKET")}
	if strings.HasPrefix(n.socket, "@") { // the abstract namespace
		n.socket = "\x00" + n.socket[1:]
	}
	usec, err := strconv.ParseInt(h.Getenv("WATCHDOG_USEC"), 10, 64)
	if pid := h.Getenv("WATCHDOG_PID"); err == nil && usec > 0 && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		n.watchdog = time.Duration(usec) * time.Microsecond
	}
	return n
}

// send sends one message, such as "READY=1". It ignores errors: they are no reason to end.
func (n systemdSocket) send(message string) {
	if n.socket == "" {
		return
	}
	var d net.Dialer
	conn, err := d.DialContext(context.Background(), "unixgram", n.socket)
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(message))
}

// beat sends heartbeats to systemd's watchdog while alive returns true, until ctx ends.
func (n systemdSocket) beat(ctx context.Context, alive func() bool) {
	if n.socket == "" || n.watchdog == 0 {
		return
	}
	for {
		if alive() {
			n.send("WATCHDOG=1")
		}
		if retry.Sleep(ctx, n.watchdog/3) != nil {
			return
		}
	}
}

// firstSocket is the descriptor of the first socket from systemd.
const firstSocket = 3

// handedOver returns the socket that systemd has opened for this process. A socket that is not on loopback needs a token,
// because other machines may reach it.
func handedOver(h compose.Host, token string) (net.Listener, error) {
	if h.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) || h.Getenv("LISTEN_FDS") != "1" {
		return nil, errors.New("systemd passed no socket, or more than one; start ralph from a socket unit")
	}
	unix.CloseOnExec(firstSocket)
	file := os.NewFile(firstSocket, "socket of systemd")
	l, err := net.FileListener(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	if tcp, is := l.Addr().(*net.TCPAddr); is && !tcp.IP.IsLoopback() && token == "" {
		return nil, errors.Join(web.ErrNeedsToken, l.Close())
	}
	return l, nil
}
