// Package redact leaves passwords out of what errors and logs show:
//
//	https://me:secret@host ──URL──▶ https://me:xxxxx@host
package redact

import "strings"

// URL returns a URL without its password. It need not parse: one with a # or a % in its password does not.
func URL(text string) string {
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return text
	}
	begin := 0
	if colon := strings.IndexByte(text[:at], ':'); colon >= 0 && strings.HasPrefix(text[colon:at], "://") {
		begin = colon + len("://")
	}
	user, _, secret := strings.Cut(text[begin:at], ":")
	if !secret {
		return text
	}
	return text[:begin] + user + ":xxxxx" + text[at:]
}
