export function useState<T>(value: T): [T, (next: T | ((before: T) => T)) => void];
export function useRef<T>(value: T): { current: T };
export function useEffect(run: () => void | undefined | (() => void), inputs?: unknown[]): void;
export function useLayoutEffect(run: () => void | undefined | (() => void), inputs?: unknown[]): void;
export function useMemo<T>(make: () => T, inputs: unknown[]): T;
