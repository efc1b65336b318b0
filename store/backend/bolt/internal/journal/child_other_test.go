//go:build !unix

package journal_test

const childEnv = "JOURNAL_TEST_CHILD"

func runChild() int { return 1 }
