package tui

import (
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

// sequences are what keys without a character send, after ESC.
func sequences() map[string]rune {
	return map[string]rune{
		"[A": tea.KeyUp, "[B": tea.KeyDown, "OA": tea.KeyUp, "OB": tea.KeyDown, "[5~": tea.KeyPgUp, "[6~": tea.KeyPgDown,
		"[H": tea.KeyHome, "[F": tea.KeyEnd, "[1~": tea.KeyHome, "[4~": tea.KeyEnd, "OH": tea.KeyHome, "OF": tea.KeyEnd,
	}
}

// decode turns what one read of the terminal gave into keys. Bubble Tea could do that, but only in a mode of the terminal that
// would outlive a killed process, and that takes Ctrl-C and Ctrl-Z away from the shell.
func decode(b []byte) (keys []tea.KeyPressMsg) {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		b = b[n:]
		switch {
		case r == '\r' || r == '\n':
			keys = append(keys, tea.KeyPressMsg{Code: tea.KeyEnter})
		case r == 0x1b && len(b) == 0:
			keys = append(keys, tea.KeyPressMsg{Code: tea.KeyEscape})
		case r == 0x1b:
			n := sequence(b)
			if code, known := sequences()[string(b[:n])]; known {
				keys = append(keys, tea.KeyPressMsg{Code: code})
			}
			b = b[n:]
		case r >= ' ' && r != 0x7f && r != utf8.RuneError:
			keys = append(keys, tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
	return keys
}

// sequence is the length of the escape sequence that b begins with; the ESC is not in it.
func sequence(b []byte) int {
	if b[0] != '[' && b[0] != 'O' {
		return 1
	}
	for i, c := range b[1:] {
		if c >= '@' && c <= '~' {
			return i + 2
		}
	}
	return len(b)
}
