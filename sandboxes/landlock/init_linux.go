package landlock

import (
	"os"
	"runtime"
)

// helperWord is the first argument of this program when a sandbox has started it; the second is its role.
const helperWord = "sandbox-landlock"

const (
	roleHelper  = "helper"  // outside the rules, one for each command
	roleCommand = "command" // what the helper starts: it goes below the rules and becomes the command
)

// conversationFD is the descriptor through which both roles get their order, and answer.
const conversationFD = 3

// Init does the work of a sandbox's helper when this process was started to be one: inside is true and the program must
// exit with the status. In every other process it returns at once. A program that opens sandboxes calls it, with
// os.Args, before anything else.
func Init(args []string) (status int, inside bool) {
	if len(args) != 3 || args[1] != helperWord {
		return 0, false
	}
	// What the kernel keeps for a thread, and not for a process, must not be another one's: the rules, and whose child a
	// process is.
	runtime.LockOSThread()
	conn, err := connect(os.NewFile(conversationFD, "conversation"))
	if err != nil {
		return 1, true // there is nobody to tell: ralph did not start this
	}
	switch args[2] {
	case roleHelper:
		err = help(conn)
	case roleCommand:
		err = enter(conn)
	}
	if err != nil {
		_ = tell(conn, report{Failed: err.Error()})
		return 1, true
	}
	return 0, true
}
