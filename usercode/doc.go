// Package usercode handles what an engine's user supplies: functions and loggers,
// which may panic, and settings, which may be wrong. [Call] and [Logger] contain
// panics as [PanicError]s; wrong settings are [ConfigError]s.
//
//	handler, getter, transform ──▶ Call ──▶ panic ──▶ *PanicError ──▶ returned, logged, or the end of a watch
//	slog.Handler ──▶ Logger ──▶ panic ──▶ *PanicError ──▶ HostConfig.OnFailure
//	options ──▶ Validate ──▶ *ConfigError: which field is wrong, and what to write instead
package usercode
