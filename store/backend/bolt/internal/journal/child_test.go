package journal_test

// childEnv says what a process that a test has started is to do.
const childEnv = "JOURNAL_TEST_CHILD"

func runChild() int { return 1 }
