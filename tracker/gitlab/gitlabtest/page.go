package gitlabtest

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
)

const defaultPage, maxPage = 20, 100

// paged answers with one numbered page of items.
func paged[T any](c *call, items []T, show func(T) object) answer {
	size, a, good := pageSize(c)
	if !good {
		return a
	}
	page := 1
	if v := c.query.Get("page"); v != "" {
		if page = number(v); page < 1 {
			return badParameter("page does not have a valid value")
		}
	}
	pages := (len(items) + size - 1) / size
	from := min(len(items), (page-1)*size)
	to := min(len(items), from+size)
	next := ""
	header := map[string]string{
		"X-Page": strconv.Itoa(page), "X-Per-Page": strconv.Itoa(size), "X-Total": strconv.Itoa(len(items)),
		"X-Total-Pages": strconv.Itoa(pages), "X-Prev-Page": "",
	}
	if page < pages {
		next = strconv.Itoa(page + 1)
		header["Link"] = nextLink(c, "page", next)
	}
	header["X-Next-Page"] = next
	return answer{status: http.StatusOK, header: header, body: objects(items[from:to], show)}
}

// keyset answers with the page after the cursor. Items must be sorted by position.
func keyset[T any](c *call, items []T, position func(T) string, show func(T) object) answer {
	size, a, good := pageSize(c)
	if !good {
		return a
	}
	after, err := base64.URLEncoding.DecodeString(c.query.Get("cursor"))
	if err != nil {
		return badParameter("cursor is invalid")
	}
	var rest []T
	for _, i := range items {
		if position(i) > string(after) {
			rest = append(rest, i)
		}
	}
	header := map[string]string{"X-Per-Page": strconv.Itoa(size)}
	if len(rest) > size {
		rest = rest[:size]
		header["Link"] = nextLink(c, "cursor", base64.URLEncoding.EncodeToString([]byte(position(rest[size-1]))))
	}
	return answer{status: http.StatusOK, header: header, body: objects(rest, show)}
}

func pageSize(c *call) (int, answer, bool) {
	v := c.query.Get("per_page")
	if v == "" {
		return defaultPage, answer{}, true
	}
	n := number(v)
	if n < 1 {
		return 0, badParameter("per_page does not have a valid value"), false
	}
	return min(n, maxPage), answer{}, true
}

func nextLink(c *call, key, value string) string {
	q := c.r.URL.Query()
	q.Set(key, value)
	return fmt.Sprintf(`<http://%s%s?%s>; rel="next"`, c.r.Host, c.r.URL.EscapedPath(), q.Encode())
}

func objects[T any](items []T, show func(T) object) []object {
	out := make([]object, 0, len(items))
	for _, i := range items {
		out = append(out, show(i))
	}
	return out
}
