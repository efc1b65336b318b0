package objectmeta

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/rand"
)

// maxName is the length of the longest name in bytes, that of a DNS subdomain.
const maxName = 253

// Bounds of generated names: the characters of the base and of the random suffix.
const (
	maxNameBase = 58
	nameSuffix  = 5
)

// GenerateName returns base with a random suffix.
func GenerateName(base string) string {
	return base[:min(len(base), maxNameBase)] + rand.String(nameSuffix)
}

// NameRule returns a kind's rule for names, nil for none, together with what holds for the names of all kinds.
func NameRule(ofKind func(name string, prefix bool) []string) func(name string, prefix bool) []string {
	if ofKind == nil {
		return validation.NameIsDNSSubdomain // which is stricter
	}
	return func(name string, prefix bool) []string {
		return append(pathProblems(name, prefix), ofKind(name, prefix)...)
	}
}

// pathProblems returns why a name cannot be a segment of a path.
func pathProblems(name string, prefix bool) []string {
	inPath := content.IsPathSegmentName
	if prefix {
		inPath = content.IsPathSegmentPrefix
	}
	problems := inPath(name)
	if strings.Contains(name, `\`) || strings.ContainsFunc(name, unicode.IsControl) || !utf8.ValidString(name) {
		problems = append(problems, "may not contain backslashes, control characters or invalid UTF-8")
	}
	if len(name) > maxName {
		problems = append(problems, fmt.Sprintf("must be no more than %d bytes", maxName))
	}
	return problems
}
