# The commands people use. Each is one line that can also be typed by hand.

set positional-arguments

# List the commands
default:
    @just --list

# Build the program as it is shipped
build:
    cargo build --release

# Run a command through the gate: just run 'echo hello'
run *COMMAND:
    cargo run --release -- run -- "$@"

# Everything that must pass, with its set-up
test:
    ./scripts/test

# The house rules that no compiler checks
tidy:
    cargo xtask tidy

# Measure against the lower limits and print the ratios
bench *ARGS:
    cargo xtask bench "$@"

# Write the pages anew that are made from the code
docs:
    cargo xtask docs

# Format everything
fmt:
    cargo fmt --all

# Build and open the documentation
doc:
    cargo doc --no-deps --workspace --open
